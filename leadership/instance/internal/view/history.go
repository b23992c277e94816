package view

import (
	"errors"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/backoff"
)

// history has the known events of a watched election.
type history struct {
	tail  tail                // the last events
	ahead tail                // the last heard events that do not directly follow tail
	heard leadership.Revision // the highest revision that was heard and does not follow; 0 for none
	due   time.Duration       // when to look for it; it may have been invented
	tries int                 // looks that have not found it

	// The history had nothing after revision end at the last look; synced says that later events
	// would have been heard, if all events are. The election need not have reached that revision,
	// because a reader can claim to have seen any.
	end        leadership.Revision
	looked     time.Duration // when that look began, if there was one
	hasLooked  bool
	synced     bool
	looking    bool // Next has asked for a look whose result has not arrived
	generation int  // of looks; those of an earlier generation may have begun too early

	disproved bool // the last look has shown that a heard event was invented

	failure Failure
	pause   time.Duration       // no look before that, because the last one has failed; 0 if it has not
	retry   leadership.Revision // the revision after which the failed look was to read
}

// Failure is the failure of a look for the events after a revision; each has a higher Number.
type Failure struct {
	Number int
	After  leadership.Revision
	Err    error
}

const (
	settling = 20 * time.Millisecond // between the first two looks for an event; doubled each time
	maxTries = 10                    // and then it counts as made up
	retry    = time.Second           // until the next look after one that failed
)

// hear handles a heard event, and reports whether it is news.
func (h *history) hear(e leadership.Event, now time.Duration) bool {
	switch {
	case e.Revision <= h.tail.last(), h.ahead.has(e.Revision):
		return false
	case h.follows(e.Revision):
		h.tail.add(e)
		h.join()
	default:
		h.ahead.add(e)
		h.expect(e.Revision, now)
	}
	return true
}

// expect plans a look for an event that was heard.
func (h *history) expect(r leadership.Revision, now time.Duration) {
	h.heard, h.due, h.tries = max(h.heard, r), now, 0
}

// missed notes that a look, begun at that time, has not found the event that was heard. On an
// emulator the event may appear a moment later; an invented event never does.
func (h *history) missed(began, now time.Duration) {
	if began < h.due {
		return // it may have come too early
	}
	h.due = now + backoff.After(h.tries, settling, settling<<maxTries)
	if h.tries++; h.tries >= maxTries {
		h.forget()
		h.disproved = true
	}
}

// forget stops waiting for heard events that do not follow.
func (h *history) forget() { h.ahead, h.heard = nil, 0 }

// follows reports whether nothing can be missing before the revision.
func (h *history) follows(r leadership.Revision) bool {
	if len(h.tail) > 0 {
		return r == h.tail.last()+1
	}
	return h.synced && r == h.end+1
}

// join moves events from ahead to the tail once nothing is missing between.
func (h *history) join() {
	for _, e := range h.ahead {
		if h.follows(e.Revision) {
			h.tail.add(e)
		}
	}
	if h.heard <= h.tail.last() {
		h.forget()
	}
}

// doubt notes that events may have been missed, and whether all are heard from now on. If not, the
// next poll finds them.
func (h *history) doubt(live bool, now time.Duration) {
	if !live && h.synced {
		h.looked = now
		return
	}
	h.synced = false
	h.generation++
}

// head returns the election's newest known revision.
func (h *history) head() leadership.Revision { return max(h.end, h.tail.last()) }

// next returns when to look for events after the head without a watcher asking. The first look, and
// the first after events were missed, is made by a watcher.
func (h *history) next(live bool) (time.Duration, Reason) {
	if h.pause > 0 {
		return h.pause, Failed
	}
	due, reason := never, Reason(0)
	if !h.synced {
		return due, reason
	}
	if !live {
		due, reason = h.looked+Poll, Silence
	}
	if h.heard > h.head() && h.due < due {
		due, reason = h.due, Missing
	}
	return due, reason
}

// Look is a request to read the history after a revision. Two with the same fields are the same
// look.
type Look struct {
	After      leadership.Revision
	generation int
}

// After returns the events after the revision, if they are in memory. If not, look is the read of
// the history to make now; it is nil while looks are paused, and failed says why.
func (e *Election) After(after leadership.Revision, now time.Duration) (events []leadership.Event, look *Look, failed error) {
	h := e.history
	if events = h.tail.after(after); len(events) > 0 {
		return events, nil, nil
	}
	from := h.head()
	switch {
	case !h.hasLooked || after < from:
		from = after
	case h.synced:
		if at, why := h.next(e.view.live); why == 0 || at > now {
			return nil, nil, nil
		}
	}
	if h.pause > now {
		return nil, nil, h.failure.Err
	}
	return nil, &Look{from, h.generation}, nil
}

// Look returns the look that a task of Next asks for; ok is false if another result has arrived
// meanwhile, or the election is no longer watched.
func (v *View) Look(t Task) (look Look, ok bool) {
	e, ok := v.elections[t.Election]
	if !ok || e.history == nil || !e.history.looking {
		return look, false
	}
	return Look{t.After, e.history.generation}, true
}

// Failure returns the failure of the last look that has failed.
func (v *View) Failure(name leadership.Election) Failure {
	if e, ok := v.elections[name]; ok && e.history != nil {
		return e.history.failure
	}
	return Failure{}
}

// Current reports whether r is known, without a look, to be the election's newest revision: the
// election is watched, and r is its head.
func (v *View) Current(name leadership.Election, r leadership.Revision) bool {
	e, ok := v.elections[name]
	if !ok || e.history == nil {
		return false
	}
	h := e.history
	return v.live && h.synced && h.head() == r && h.heard <= r
}

// Looked handles the result of a look: events in order and without a gap, or its error. more says
// that there may be more events. It reports whether there is news or a failure.
func (v *View) Looked(name leadership.Election, look Look, events []leadership.Event, more bool, err error, began, now time.Duration) (wake bool) {
	e, ok := v.elections[name]
	if !ok || e.history == nil {
		return false
	}
	h := e.history
	h.looking = false
	if err != nil {
		h.fail(look, err, now)
	} else {
		news := h.learn(look, events, !more && look.generation == h.generation, began, now)
		wake, h.pause = news || h.pause > 0, 0
	}
	if h.disproved {
		h.disproved = false
		e.forget(now)
	}
	for _, event := range events {
		e.assigned.heard(event, now)
		wake = e.hearOrder(event) || wake
	}
	if n := len(events); n > 0 && events[n-1].Revision > e.newest {
		for _, earlier := range events[:n-1] {
			if earlier.Revision > e.newest {
				e.hearSuccession(earlier, now)
			}
		}
		e.hearEnd(events[n-1], now)
		e.hear(events[n-1], now)
	}
	v.settle(e)
	return wake || err != nil
}

// fail delays the next look. HistoryCompacted is an answer, not a failure.
func (h *history) fail(look Look, err error, now time.Duration) {
	h.failure = Failure{h.failure.Number + 1, look.After, err}
	h.looked, h.due = now, max(h.due, now+retry)
	if !errors.Is(err, leadership.HistoryCompacted) {
		h.pause, h.retry = now+retry, look.After
	}
}

// learn adds the events found by a look that began at that time; all says that there were no more.
// It reports whether any was news.
func (h *history) learn(look Look, events []leadership.Event, all bool, began, now time.Duration) bool {
	last := h.tail.last()
	for _, e := range events {
		if e.Revision > h.tail.last() {
			h.tail.add(e)
		}
	}
	if all {
		h.sync(max(look.After, tail(events).last()), began, now)
	}
	h.join()
	return h.tail.last() > last
}

// sync notes that a look found nothing in the history after the revision.
func (h *history) sync(end leadership.Revision, began, now time.Duration) {
	if h.synced && end > h.end && end > h.tail.last() {
		return // a reader claimed a revision that does not exist
	}
	h.end, h.looked, h.hasLooked, h.synced = end, began, true, true
	if h.tail.first() > end+1 { // and so it may be made up
		h.expect(h.tail.last(), now)
		h.ahead, h.tail = h.tail, nil
	}
	if h.heard > end {
		h.missed(began, now)
	}
}
