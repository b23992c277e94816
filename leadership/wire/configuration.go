package wire

import (
	"time"

	"regent/leadership"
)

// Configuration is what an operator has set, with the defaults filled in.
type Configuration struct {
	LeaseDuration    Duration `json:"leaseDuration"`
	MaxLeaseDuration Duration `json:"maxLeaseDuration,omitzero"`
	LockDelay        Duration `json:"lockDelay"`
	RetireAfter      Duration `json:"retireAfter,omitzero"`
	Description      string   `json:"description,omitzero"`
	Policy           *Policy  `json:"policy,omitzero"`
}

func newConfiguration(c leadership.Config) Configuration {
	return Configuration{
		LeaseDuration:    Duration(c.LeaseDuration),
		MaxLeaseDuration: Duration(c.MaxLeaseDuration),
		LockDelay:        Duration(c.LockDelay),
		RetireAfter:      Duration(c.RetireAfter),
		Description:      c.Description,
		Policy:           newPolicy(c),
	}
}

func (w Configuration) leadership() leadership.Config {
	ballot, _ := w.Policy.ballot() // the server has checked these
	leadersOf, delegation, _ := w.Policy.hierarchy()
	return leadership.Config{
		LeaseDuration:    time.Duration(w.LeaseDuration),
		MaxLeaseDuration: time.Duration(w.MaxLeaseDuration),
		LockDelay:        time.Duration(w.LockDelay),
		RetireAfter:      time.Duration(w.RetireAfter),
		Description:      w.Description,
		Term:             w.Policy.term(),
		Ballot:           ballot,
		Promotion:        given(w.Policy).Promotion,
		LeadersOf:        leadersOf,
		Delegation:       delegation,
	}
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
	return ConfigureRequest{
		LeaseDuration:    optional(Duration(c.LeaseDuration)),
		MaxLeaseDuration: optional(Duration(c.MaxLeaseDuration)),
		LockDelay:        Duration(c.LockDelay),
		RetireAfter:      Duration(c.RetireAfter),
		Description:      c.Description,
		Policy:           newPolicy(c),
	}
}

// Leadership reads a configuration.
func (w ConfigureRequest) Leadership() (leadership.Config, error) {
	d, err := leaseDuration(w.LeaseDuration)
	if err != nil {
		return leadership.Config{}, err
	}
	most := time.Duration(given(w.MaxLeaseDuration))
	if w.MaxLeaseDuration != nil && most == 0 {
		return leadership.Config{}, malformed("/maxLeaseDuration", "maxLeaseDuration is from %v to %gh, not 0s; leave it out for no limit of the election's own",
			leadership.MinLeaseDuration, leadership.MaxLeaseDuration.Hours())
	}
	ballot, err := w.Policy.ballot()
	if err != nil {
		return leadership.Config{}, err
	}
	leadersOf, delegation, err := w.Policy.hierarchy()
	if err != nil {
		return leadership.Config{}, err
	}
	return leadership.Config{
		LeaseDuration: d, MaxLeaseDuration: most, LockDelay: time.Duration(w.LockDelay), RetireAfter: time.Duration(w.RetireAfter),
		Description: w.Description, Term: w.Policy.term(), Ballot: ballot,
		Promotion: given(w.Policy).Promotion, LeadersOf: leadersOf, Delegation: delegation,
	}, nil
}
