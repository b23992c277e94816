package relay

import (
	"sync"

	"regent/leadership"
)

// maxKnown is how many elections are remembered. One that was forgotten costs a read of its outbox at its next change.
const maxKnown = 100_000

// known remembers how far the elections are announced.
type known struct {
	mu        sync.Mutex // guards elections
	elections map[leadership.Election]reach
}

// reach is how far one election is announced: up to these revisions, 0 for none.
type reach struct {
	out   leadership.Revision // it is out, and all before it
	acked leadership.Revision // by what was acknowledged to this process, and not only heard
}

// of returns how far the election is known to be announced.
func (k *known) of(e leadership.Election) reach {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.elections[e]
}

// acked remembers that an event was acknowledged to this process.
func (k *known) acked(id leadership.EventID) { k.raise(id.Election, reach{id.Revision, id.Revision}) }

// heard remembers that an event came out of the topic.
func (k *known) heard(id leadership.EventID) { k.raise(id.Election, reach{out: id.Revision}) }

func (k *known) raise(e leadership.Election, to reach) {
	k.mu.Lock()
	defer k.mu.Unlock()
	old, ok := k.elections[e]
	if !ok && len(k.elections) >= maxKnown {
		k.forgetOne()
	}
	k.elections[e] = reach{max(old.out, to.out), max(old.acked, to.acked)}
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

// follow says whether the first of the events follows on a revision, and each on the one before it.
func follow(events []leadership.Event, r leadership.Revision) bool {
	for _, e := range events {
		if r++; e.Revision != r {
			return false
		}
	}
	return true
}
