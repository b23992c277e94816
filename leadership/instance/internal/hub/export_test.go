package hub

import "regent/leadership"

// LockedAfterAPanic reports whether a hub is locked after a read from memory that has panicked.
func LockedAfterAPanic() bool {
	h := &Hub{} // without a view
	func() {
		defer func() { _ = recover() }()
		h.fresh(leadership.ReadRequest{})
	}()
	return !h.mu.TryLock()
}

// Shrink lets windows have no more than n entries, but for those that a feed brings which looks
// further back, and know no more than n/2 elections.
func (h *Hub) Shrink(n int) { h.feeds.size, h.feeds.most = n, n/2 }

// Known is how many elections the window knows.
func (h *Hub) Known() int {
	h.feeds.mu.Lock()
	defer h.feeds.mu.Unlock()
	return len(h.feeds.journal.window.known)
}

// Gaps is of how many elections something is missing before an event that was heard.
func (h *Hub) Gaps() int {
	h.feeds.mu.Lock()
	defer h.feeds.mu.Unlock()
	return len(h.feeds.journal.gaps)
}
