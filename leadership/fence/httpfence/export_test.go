package httpfence

// Remembered returns how many elections are remembered.
func (c *Checks) Remembered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.terms)
}
