package relay

import (
	"sync"

	"regent/leadership"
)

// maxKnown is how many elections are remembered. One that was forgotten costs a read of its outbox at its next change.
const maxKnown = 100_000

// known remembers up to which revision the events of an election are out: that one, and all before it.
type known struct {
	mu  sync.Mutex // guards out
	out map[leadership.Election]leadership.Revision
}

// of returns the newest revision that is known to be out, 0 for none.
func (k *known) of(e leadership.Election) leadership.Revision {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.out[e]
}

// raise remembers that an event is out.
func (k *known) raise(id leadership.EventID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	old, ok := k.out[id.Election]
	if !ok && len(k.out) >= maxKnown {
		k.forgetOne()
	}
	k.out[id.Election] = max(old, id.Revision)
}

// forgetOne makes room, at the cost of any election.
func (k *known) forgetOne() {
	for e := range k.out {
		delete(k.out, e)
		return
	}
}

// news returns those events of one election that are not known to be out.
func (k *known) news(events []leadership.Event) []leadership.Event {
	if len(events) == 0 {
		return nil
	}
	out := k.of(events[0].Election)
	for len(events) > 0 && events[0].Revision <= out {
		events = events[1:]
	}
	return events
}

// follow says whether events of one election may be sent without a look into the outbox: the first follows what is known to be out, and
// each follows the one before.
func (k *known) follow(events []leadership.Event) bool {
	if len(events) == 0 {
		return true
	}
	next := k.of(events[0].Election) + 1
	for _, e := range events {
		if e.Revision != next {
			return false
		}
		next++
	}
	return true
}
