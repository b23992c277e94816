package hub

// Shrink lets windows have no more than n entries, but for those that a feed brings which looks
// further back.
func (h *Hub) Shrink(n int) { h.feeds.size = n }
