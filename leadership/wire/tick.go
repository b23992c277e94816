package wire

// Tick is the reply to a tick.
type Tick struct {
	Expired   int `json:"expired"`   // ended leases whose end was not yet recorded
	Announced int `json:"announced"` // events that had not been announced yet
}
