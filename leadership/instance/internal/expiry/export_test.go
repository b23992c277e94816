package expiry

// Kept is how many leases are kept in mind, and how many places the line has.
func (l *Lookout) Kept() (terms, line int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.terms), len(l.line)
}
