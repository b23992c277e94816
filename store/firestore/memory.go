package firestore

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"regent/leadership"
	"regent/leadership/rule"
)

// memorySize is how many leases a handle remembers. With the largest metadata and report one takes
// about 8 KiB; a forgotten lease costs its next renewal one read.
const memorySize = 10_000

// memory has the leases that a handle last read or wrote, so that a renewal is one write without a
// read. It only decides whether to try; the guard on update_time, in the store, decides whether the
// renewal counts.
type memory struct {
	mu     sync.Mutex // guards all below
	leases *simplelru.LRU[leadership.Election, document]
	latest time.Time // the latest time of the store in any reply
}

// newMemory returns a memory of that many leases, at least 1.
func newMemory(size int) *memory {
	leases, err := simplelru.NewLRU[leadership.Election, document](size, nil)
	if err != nil {
		panic(err) // the size is below 1
	}
	return &memory{leases: leases}
}

// remember keeps the document of a reply at the store's time now, unless a later version is known.
// An election without a leader has nothing to renew and is dropped.
func (m *memory) remember(doc document, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.After(m.latest) {
		m.latest = now
	}
	e := doc.record.Election
	known, ok := m.leases.Peek(e)
	switch {
	case ok && !doc.updated.After(known.updated):
	case doc.record.LeaderID == "":
		m.leases.Remove(e)
	default:
		m.leases.Add(e, doc)
	}
}

// sight returns the remembered version of a lease or, if that is later, the version in a ticket
// (zero: none), at the latest time of the store in any reply, which is no later than the next
// commit. ok is false if there is neither.
func (m *memory) sight(e leadership.Election, ticket document) (_ sight, ok bool) {
	m.mu.Lock()
	held, ok := m.leases.Get(e)
	now := m.latest
	m.mu.Unlock()
	if ticket.updated.After(held.updated) {
		held, ok = ticket, true
	}
	if held.updated.After(now) { // from a ticket of another handle
		now = held.updated
	}
	return sight{doc: held, at: now}, ok
}

// heartbeat returns the change that the rule Renew decides on the remembered lease or on the one in
// the renewal's ticket; see sight. ok is false if the store must be read.
func (m *memory) heartbeat(c rule.Renewal, ticket document) (held document, ch rule.Change, ok bool) {
	known, ok := m.sight(c.Election, ticket)
	if !ok {
		return document{}, rule.Change{}, false
	}
	ch, err := rule.Renew(known.snapshot(), c)
	return known.doc, ch, err == nil
}

// known returns the remembered version of a lease; ok is false if there is none.
func (m *memory) known(e leadership.Election) (doc document, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leases.Peek(e)
}

// now returns the latest time of the store in any reply; zero before the first.
func (m *memory) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.latest
}

// forget drops a version that is no longer the store's.
func (m *memory) forget(doc document) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := doc.record.Election
	if known, ok := m.leases.Peek(e); ok && known.updated.Equal(doc.updated) {
		m.leases.Remove(e)
	}
}
