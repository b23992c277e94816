package outbox

import (
	"sync"

	"regent/leadership"
)

// maxKnown is how many elections are remembered. A forgotten one costs a read of its outbox at its
// next change.
const maxKnown = 100_000

// known remembers up to which revision each election is announced. The view's newest revision
// cannot serve for that: committed events may not be announced yet, and the view forgets elections
// that no caller asks about.
type known struct {
	mu        sync.Mutex // guards elections
	elections map[leadership.Election]reach
}

// reach is the progress of announcing one election, as revisions; 0 for none.
type reach struct {
	out leadership.Revision // the highest acknowledged to this process, or heard
	// All from first to last were acknowledged to this process. Events that were only heard do not
	// count: the message may be of another store, or overtake events that are not announced yet.
	first, last leadership.Revision
}

// out returns the highest revision of the election that is known to be announced.
func (k *known) out(e leadership.Election) leadership.Revision {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.elections[e].out
}

// acked remembers that the topic acknowledged to this process events of one election, which must be
// consecutive in its outbox.
func (k *known) acked(events []leadership.Event) {
	first, last := events[0].Revision, events[len(events)-1].Revision
	k.raise(events[0].Election, reach{last, first, last})
}

// unsent returns those of an election's first events in the outbox that this process has not
// published.
func (k *known) unsent(events []leadership.Event) []leadership.Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.elections[events[0].Election]
	if events[0].Revision < r.first {
		return events // some were overtaken
	}
	return after(events, r.last)
}

func (k *known) raise(e leadership.Election, to reach) {
	k.mu.Lock()
	defer k.mu.Unlock()
	old, ok := k.elections[e]
	if !ok && len(k.elections) >= maxKnown {
		for any := range k.elections { // makes room
			delete(k.elections, any)
			break
		}
	}
	switch {
	case to.last == 0 || to.last < old.first-1: // only heard, or behind the remembered run
		to.first, to.last = old.first, old.last
	case to.first <= old.last+1 && old.last > 0:
		to.first, to.last = min(to.first, old.first), max(to.last, old.last)
	}
	to.out = max(to.out, old.out)
	k.elections[e] = to
}

// after returns those of an election's events that come after a revision. They are in order.
func after(events []leadership.Event, r leadership.Revision) []leadership.Event {
	for len(events) > 0 && events[0].Revision <= r {
		events = events[1:]
	}
	return events
}

// run returns the consecutive events from the first on.
func run(events []leadership.Event) []leadership.Event {
	for i := range events[1:] {
		if events[i+1].Revision != events[i].Revision+1 {
			return events[:i+1]
		}
	}
	return events
}

// follow reports whether the events are consecutive, beginning right after revision r.
func follow(events []leadership.Event, r leadership.Revision) bool {
	for _, e := range events {
		if r++; e.Revision != r {
			return false
		}
	}
	return true
}
