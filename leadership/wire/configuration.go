package wire

import (
	"time"

	"regent/leadership"
)

// Configuration is what an operator has set, with the defaults filled in.
type Configuration struct {
	LeaseDuration Duration `json:"leaseDuration"`
	LockDelay     Duration `json:"lockDelay"`
	RetireAfter   Duration `json:"retireAfter,omitzero"`
	Description   string   `json:"description,omitzero"`
}

func newConfiguration(c leadership.Config) Configuration {
	return Configuration{
		LeaseDuration: Duration(c.LeaseDuration),
		LockDelay:     Duration(c.LockDelay),
		RetireAfter:   Duration(c.RetireAfter),
		Description:   c.Description,
	}
}

func (w Configuration) leadership() leadership.Config {
	return leadership.Config{
		LeaseDuration: time.Duration(w.LeaseDuration),
		LockDelay:     time.Duration(w.LockDelay),
		RetireAfter:   time.Duration(w.RetireAfter),
		Description:   w.Description,
	}
}

// ConfigureRequest is the body of a configuration. A field that is left out is reset to its
// default.
type ConfigureRequest struct {
	LeaseDuration *Duration `json:"leaseDuration,omitzero"`
	LockDelay     Duration  `json:"lockDelay,omitzero"`
	RetireAfter   Duration  `json:"retireAfter,omitzero"`
	Description   string    `json:"description,omitzero"`
}

// NewConfigureRequest writes a request.
func NewConfigureRequest(c leadership.Config) ConfigureRequest {
	return ConfigureRequest{
		LeaseDuration: optionalDuration(c.LeaseDuration),
		LockDelay:     Duration(c.LockDelay),
		RetireAfter:   Duration(c.RetireAfter),
		Description:   c.Description,
	}
}

// Leadership reads a configuration.
func (w ConfigureRequest) Leadership() (leadership.Config, error) {
	d, err := leaseDuration(w.LeaseDuration)
	return leadership.Config{
		LeaseDuration: d,
		LockDelay:     time.Duration(w.LockDelay),
		RetireAfter:   time.Duration(w.RetireAfter),
		Description:   w.Description,
	}, err
}
