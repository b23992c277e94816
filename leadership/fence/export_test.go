package fence

// Busy says whether somebody writes through the guard at this moment, so that nobody else can.
func (g *Guard) Busy() bool {
	if !g.mu.TryLock() {
		return true
	}
	g.mu.Unlock()
	return false
}
