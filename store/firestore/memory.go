package firestore

import (
	"container/list"
	"sync"
	"time"

	"regent/leadership"
)

// memorySize is how many leases a handle remembers. With the largest metadata one takes about 5 KiB; a lease that was forgotten costs its
// next renewal one read.
const memorySize = 10_000

// memory is what a handle knows of the leases that it last read or wrote: what makes a renewal one write without a read. It is a guess. It
// decides what is worth a try; the guard on update_time, in the store, decides whether it counts.
type memory struct {
	mu     sync.Mutex // guards all below
	size   int
	byName map[leadership.Election]*list.Element // of *list.Element with a document
	recent *list.List                            // the most recently used first
	latest time.Time                             // the latest time of the store that any reply brought
}

func newMemory(size int) *memory {
	return &memory{size: size, byName: map[leadership.Election]*list.Element{}, recent: list.New()}
}

// remember keeps what a reply at the store's time now said, unless a later version is known. An election without a leader has nothing to
// renew and is dropped.
func (m *memory) remember(doc document, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.After(m.latest) {
		m.latest = now
	}
	e := doc.record.Election
	at, known := m.byName[e]
	switch {
	case known && !doc.updated.After(at.Value.(document).updated):
	case doc.record.LeaderID == "":
		m.drop(e)
	case known:
		at.Value = doc
		m.recent.MoveToFront(at)
	default:
		m.byName[e] = m.recent.PushFront(doc)
		m.trim()
	}
}

// heartbeat says what the renewal would write, by the rule and what is remembered; ok is false if only a look at the store can tell.
func (m *memory) heartbeat(c leadership.Renewal) (held document, ch leadership.Change, ok bool) {
	m.mu.Lock()
	at, known := m.byName[c.Election]
	now := m.latest
	if known {
		held = at.Value.(document)
		m.recent.MoveToFront(at)
	}
	m.mu.Unlock()
	if !known {
		return document{}, leadership.Change{}, false
	}
	ch, err := leadership.Renew(leadership.Snapshot{Record: held.record, Now: now, Guard: guard}, c)
	return held, ch, err == nil
}

// forget drops a version that turned out to be no longer the store's.
func (m *memory) forget(doc document) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := doc.record.Election
	if at, known := m.byName[e]; known && at.Value.(document).updated.Equal(doc.updated) {
		m.drop(e)
	}
}

// drop needs mu.
func (m *memory) drop(e leadership.Election) {
	if at, known := m.byName[e]; known {
		m.recent.Remove(at)
		delete(m.byName, e)
	}
}

// trim needs mu.
func (m *memory) trim() {
	for m.recent.Len() > m.size {
		oldest := m.recent.Back().Value.(document)
		m.drop(oldest.record.Election)
	}
}
