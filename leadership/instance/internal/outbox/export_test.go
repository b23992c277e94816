package outbox

// MaxKnown is maxKnown.
const MaxKnown = maxKnown

// Remembered returns how many elections are remembered.
func (o *Outbox) Remembered() int {
	o.known.mu.Lock()
	defer o.known.mu.Unlock()
	return len(o.known.elections)
}
