package relay

// MaxKnown is maxKnown.
const MaxKnown = maxKnown

// Remembered is how many elections are remembered.
func (r *Relay) Remembered() int {
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	return len(r.known.elections)
}
