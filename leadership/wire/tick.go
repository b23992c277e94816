package wire

// Tick is the reply to a tick.
type Tick struct {
	Expired   int `json:"expired"`   // leases that had run out, and that nobody had recorded
	Announced int `json:"announced"` // events that had been left behind
}
