package outbox

import (
	"sync"

	"regent/leadership"
)

// maxKnown is how many elections are remembered. One that was forgotten costs a read of its outbox
// at its next change.
const maxKnown = 100_000

// known remembers how far the elections are announced.
type known struct {
	mu        sync.Mutex // guards elections
	elections map[leadership.Election]reach
}

// reach says how far one election is announced, each as a revision that is out with all before it;
// 0 for none.
type reach struct {
	out  leadership.Revision // acknowledged to this process, or heard
	at   int64               // when that event was committed, as it was told
	sure leadership.Revision // acknowledged to this process, or heard as the outbox has it
}

// out returns how far the election is known to be out.
func (k *known) out(e leadership.Election) leadership.Revision {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.elections[e].out
}

// acked remembers that the topic acknowledged an event to this process.
func (k *known) acked(e leadership.Event) {
	k.raise(e.Election, reach{e.Revision, e.At.UnixNano(), e.Revision})
}

// heard remembers that the topic delivered an event.
func (k *known) heard(e leadership.Event) {
	k.raise(e.Election, reach{out: e.Revision, at: e.At.UnixNano()})
}

// unsent returns the events that follow the last one which is surely out, of events that the outbox
// has at the front of an election. What was only heard must be among them: a message of another
// store keeps no event from being announced.
func (k *known) unsent(events []leadership.Event) []leadership.Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.elections[events[0].Election]
	for _, e := range events {
		if e.Revision == r.out && e.At.UnixNano() == r.at {
			return after(events, r.out)
		}
	}
	return after(events, r.sure)
}

func (k *known) raise(e leadership.Election, to reach) {
	k.mu.Lock()
	defer k.mu.Unlock()
	old, ok := k.elections[e]
	if !ok && len(k.elections) >= maxKnown {
		k.forgetOne()
	}
	to.sure = max(to.sure, old.sure)
	if old.out > to.out {
		to.out, to.at = old.out, old.at
	}
	k.elections[e] = to
}

// forgetOne makes room, at the cost of any election.
func (k *known) forgetOne() {
	for e := range k.elections {
		delete(k.elections, e)
		return
	}
}

// after returns those of an election's events that come after a revision. They are in order.
func after(events []leadership.Event, r leadership.Revision) []leadership.Event {
	for len(events) > 0 && events[0].Revision <= r {
		events = events[1:]
	}
	return events
}

// follow reports whether the first event follows a revision, and each event the one before it.
func follow(events []leadership.Event, r leadership.Revision) bool {
	for _, e := range events {
		if r++; e.Revision != r {
			return false
		}
	}
	return true
}
