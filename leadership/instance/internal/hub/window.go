package hub

import (
	"slices"
	"time"

	"regent/leadership"
)

// window is the part of the history of all elections that is in memory. The mutex of feeds guards
// it.
//
// The entries of one election are in order and without a gap. Those of different elections are in
// no particular order; but of all events that were committed after from,
//
//   - those up to mark are among the entries;
//   - those up to the cursor of an entry are not later than the entry.
type window struct {
	began   time.Time // events of unknown elections that were committed up to this instant are not new
	from    time.Time
	mark    time.Time
	entries []Item
	first   int                                         // the number of entries[0]; it only rises
	known   map[leadership.Election]leadership.Revision // of the last entry of each election; see forget
	fresh   int                                         // how many entries were committed after mark
	size    int                                         // the most entries that there are, except for those that widen adds
	most    int                                         // the most elections that are known when take returns
}

// maxEntries is how many events of all elections are kept in memory. It is well above
// leadership.MaxRecent, so that a reader that resumes from as far back as possible has time to
// read.
const maxEntries = 16 << 10

// maxKnown is the number of elections whose newest revision is kept in memory. The next event of a
// forgotten election costs a look.
const maxKnown = 8 * maxEntries

// hear enters the event if it is the next of its election, or the first ever. missing reports that
// it is news but neither, so that events may be missing before it.
func (w *window) hear(e leadership.Event) (entered, missing bool) {
	if !w.news(e) {
		return false, false
	}
	if e.Revision != w.known[e.Election]+1 {
		return false, true
	}
	w.enter(e)
	return true, false
}

// news reports whether the event is newer than the last known one.
func (w *window) news(e leadership.Event) bool {
	known := w.known[e.Election]
	return e.Revision > known && (known > 0 || e.At.After(w.began))
}

func (w *window) enter(e leadership.Event) {
	w.entries = append(w.entries, Item{e, newCursor(w.mark)})
	w.known[e.Election] = e.Revision
	w.fresh++
	if len(w.entries) > w.size {
		w.from = latest(w.from, w.entries[0].Event.At)
		w.entries = w.entries[1:]
		w.first++
	}
}

// take enters those events from the history that are new. The events must be all that were
// committed after the present mark, or an earlier instant, up to the new mark.
func (w *window) take(events []leadership.Event, mark time.Time) {
	order(events)
	for _, e := range events {
		if w.news(e) {
			w.enter(e)
		}
	}
	w.mark = latest(w.mark, mark)
	w.fresh = 0
	for _, i := range w.entries {
		if i.Event.At.After(w.mark) {
			w.fresh++
		}
	}
	w.forget()
}

// forget forgets the elections without entries if too many are known. Their events were committed
// up to from. Every event up to the mark has been entered, so if from is not after it, no event of
// an unknown election from that time is new.
func (w *window) forget() {
	if len(w.known) <= w.most || w.from.After(w.mark) {
		return
	}
	w.began = latest(w.began, w.from)
	w.known = make(map[leadership.Election]leadership.Revision, len(w.entries))
	for _, i := range w.entries {
		w.known[i.Event.Election] = i.Event.Revision
	}
}

// widen extends the window back to the instant from. events must be all that were committed after
// it, and may include some from before. It returns by how much the numbers of the existing entries
// have risen.
func (w *window) widen(events []leadership.Event, from, mark time.Time) (risen int) {
	w.take(events, mark)
	older := w.older(events)
	rest := w.mark // events later than the entry were committed after this instant
	for _, i := range w.entries {
		rest = earliest(rest, justBefore(i.Event))
	}
	for n := range slices.Backward(older) {
		older[n].Cursor = newCursor(rest)
		rest = earliest(rest, justBefore(older[n].Event))
	}
	w.entries = append(older, w.entries...)
	w.from = from
	return len(older)
}

// older returns the events that directly precede the entries of their election, without a gap.
func (w *window) older(events []leadership.Event) []Item {
	oldest := make(map[leadership.Election]leadership.Revision)
	for _, i := range slices.Backward(w.entries) {
		oldest[i.Event.Election] = i.Event.Revision
	}
	var older []Item
	for _, e := range slices.Backward(events) {
		if first, ok := oldest[e.Election]; !ok || e.Revision == first-1 {
			older = append(older, Item{Event: e})
			oldest[e.Election] = e.Revision
			w.known[e.Election] = max(w.known[e.Election], e.Revision)
		}
	}
	slices.Reverse(older)
	return older
}

// justBefore returns the last instant before the event's, at which other events may have been
// committed.
func justBefore(e leadership.Event) time.Time { return e.At.Add(-time.Nanosecond) }

// place returns the number of the first entry that was committed after the instant.
func (w *window) place(at time.Time) int {
	later := func(i Item) bool { return i.Event.At.After(at) }
	if n := slices.IndexFunc(w.entries, later); n >= 0 {
		return w.first + n
	}
	return w.end()
}

// end returns the number of the next entry.
func (w *window) end() int { return w.first + len(w.entries) }

// order sorts the events of each election by revision, within the places that this election's
// events have. They come sorted by time, and the clocks of a store's servers may differ.
func order(events []leadership.Event) {
	newest := make(map[leadership.Election]leadership.Revision)
	for n, e := range events {
		if e.Revision < newest[e.Election] {
			sink(events[:n+1])
		}
		newest[e.Election] = max(newest[e.Election], e.Revision)
	}
}

// sink moves the last event down to its place among the events of its election.
func sink(events []leadership.Event) {
	at := len(events) - 1
	for n, e := range slices.Backward(events[:at]) {
		if e.Election == events[at].Election && e.Revision > events[at].Revision {
			events[n], events[at] = events[at], e
			at = n
		}
	}
}
