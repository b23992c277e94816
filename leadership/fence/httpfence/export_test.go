package httpfence

// Remembered returns how many elections are remembered.
func (c *Checks) Remembered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.terms)
}

// Remembered returns how many resources are remembered.
func (g *Gate) Remembered() int {
	g.serial.mu.Lock()
	defer g.serial.mu.Unlock()
	return len(g.serial.resources)
}
