package wire

import (
	"cmp"
	"time"

	"regent/leadership"
)

// Configuration is the configuration of an election, with the defaults filled in.
type Configuration struct {
	LeaseDuration    Duration `json:"leaseDuration"`
	MaxLeaseDuration Duration `json:"maxLeaseDuration,omitzero"`
	LockDelay        Duration `json:"lockDelay"`
	RetireAfter      Duration `json:"retireAfter,omitzero"`
	Description      string   `json:"description,omitzero"`
	Policy           *Policy  `json:"policy,omitzero"`
}

func newConfiguration(c leadership.Config) Configuration {
	return Configuration{Duration(c.LeaseDuration), Duration(c.MaxLeaseDuration), Duration(c.LockDelay), Duration(c.RetireAfter), c.Description, newPolicy(c)}
}

func (w Configuration) leadership() leadership.Config {
	c, _ := w.config() // the server has checked it
	return c
}

// config returns the configuration. If a part is malformed, it returns an error and the rest.
func (w Configuration) config() (leadership.Config, error) {
	ballot, err := w.Policy.ballot()
	leadersOf, delegation, hierarchyErr := w.Policy.hierarchy()
	return leadership.Config{
		LeaseDuration:    time.Duration(w.LeaseDuration),
		MaxLeaseDuration: time.Duration(w.MaxLeaseDuration),
		LockDelay:        time.Duration(w.LockDelay),
		RetireAfter:      time.Duration(w.RetireAfter),
		Description:      w.Description,
		Term:             w.Policy.term(),
		Ballot:           ballot,
		Seats:            given(w.Policy).Seats,
		Promotion:        given(w.Policy).Promotion,
		LeadersOf:        leadersOf,
		Delegation:       delegation,
	}, cmp.Or(err, hierarchyErr)
}

// ConfigureRequest is the body of a configuration. A field that is left out is reset to its
// default.
type ConfigureRequest struct {
	LeaseDuration    *Duration `json:"leaseDuration,omitzero"`
	MaxLeaseDuration *Duration `json:"maxLeaseDuration,omitzero"`
	LockDelay        Duration  `json:"lockDelay,omitzero"`
	RetireAfter      Duration  `json:"retireAfter,omitzero"`
	Description      string    `json:"description,omitzero"`
	Policy           *Policy   `json:"policy,omitzero"`
}

// NewConfigureRequest writes a request.
func NewConfigureRequest(c leadership.Config) ConfigureRequest {
	w := newConfiguration(c)
	return ConfigureRequest{optional(w.LeaseDuration), optional(w.MaxLeaseDuration), w.LockDelay, w.RetireAfter, w.Description, w.Policy}
}

// Leadership reads a configuration.
func (w ConfigureRequest) Leadership() (leadership.Config, error) {
	d, err := leaseDuration(w.LeaseDuration)
	if err != nil {
		return leadership.Config{}, err
	}
	if isEmpty(w.MaxLeaseDuration) {
		return leadership.Config{}, malformed("/maxLeaseDuration", "%v", leadership.MaxLeaseBounds.Check("maxLeaseDuration", 0))
	}
	return Configuration{Duration(d), given(w.MaxLeaseDuration), w.LockDelay, w.RetireAfter, w.Description, w.Policy}.config()
}
