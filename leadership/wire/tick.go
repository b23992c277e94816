package wire

// Tick is the reply to a tick.
type Tick struct {
	Announced int `json:"announced"` // events that had not been announced yet
	Expired   int `json:"expired"`   // ended leases whose end was not yet recorded
	Retired   int `json:"retired"`   // elections that were vacant for longer than their retireAfter
}
