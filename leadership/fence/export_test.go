package fence

// Busy reports whether a write is in progress.
func (g *Guard) Busy() bool {
	if !g.mu.TryLock() {
		return true
	}
	g.mu.Unlock()
	return false
}
