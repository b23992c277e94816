package firestore

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"regent/leadership/rule"
)

// How many heads of logs a handle remembers. A forgotten head costs its next change one read.
const (
	headsSize  = 10_000
	headsBytes = 64 << 20 // of their texts and bodies
)

// heads remembers the heads that a handle last read or wrote in order to change them, so that the
// next change is one write without a read. As with memory, the guard in the store decides whether
// that write counts.
type heads struct {
	mu    sync.Mutex // guards all below
	known *simplelru.LRU[rule.LogID, head]
	bytes int // of the known ones
	most  int // bytes
}

// newHeads returns a memory of up to size heads, at least 1, with up to that many bytes together.
func newHeads(size, bytes int) *heads {
	h := &heads{most: bytes}
	known, err := simplelru.NewLRU(size, func(_ rule.LogID, left head) { h.bytes -= left.size() })
	if err != nil {
		panic(err) // the size is below 1
	}
	h.known = known
	return h
}

// remember keeps a head, unless a later version is known.
func (h *heads) remember(seen head) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := seen.log.ID
	if known, ok := h.known.Peek(id); ok && known.log.WrittenAt.After(seen.log.WrittenAt) {
		return
	}
	h.known.Remove(id) // Add would not call the eviction function for a replaced one
	h.known.Add(id, seen)
	for h.bytes += seen.size(); h.bytes > h.most; {
		h.known.RemoveOldest()
	}
}

// get returns the remembered version of a head; ok is false if there is none.
func (h *heads) get(id rule.LogID) (known head, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known.Get(id)
}

// forget drops a version that is no longer the store's.
func (h *heads) forget(seen head) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known, ok := h.known.Peek(seen.log.ID); ok && known.log.WrittenAt.Equal(seen.log.WrittenAt) {
		h.known.Remove(seen.log.ID)
	}
}
