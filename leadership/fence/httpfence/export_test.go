package httpfence

// Remembered is how many elections there is something kept of.
func (c *Checks) Remembered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.terms)
}

// Remembered is how many resources there is something kept of.
func (g *Gate) Remembered() int {
	g.turns.mu.Lock()
	defer g.turns.mu.Unlock()
	return len(g.turns.of)
}
