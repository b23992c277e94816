package leadership

import (
	"errors"
	"fmt"
	"time"

	"regent/leadership/internal/form"
)

// MaxPeerLength is how long the name of a peer may be.
const MaxPeerLength = 64

// Via names a lease that a candidate holds in another election, for another lease to stand on.
type Via struct {
	Peer     string // the operator's name for another service; "": this one
	Election Election
	Token    Token
}

func (v Via) validate() (field string, err error) {
	if v == (Via{}) {
		return "", nil
	}
	if err := v.Election.Validate(); err != nil {
		return "via.election", err
	}
	if err := v.Token.Validate(); err != nil {
		return "via.fencingToken", err
	}
	return "via.peer", validatePeer(v.Peer)
}

// validatePeer accepts "", which stands for this service.
func validatePeer(name string) error {
	if name != "" && (len(name) > MaxPeerLength || CandidateID(name).Validate() != nil) {
		return fmt.Errorf("a peer's name is 1 to %d of A-Z, a-z, 0-9 and \"._@:-\", not %s", MaxPeerLength, form.Shown(name))
	}
	return nil
}

// Parent is the lease that the present one stands on, and its end as last read.
type Parent struct {
	Peer     string    `json:"peer,omitempty"`
	Election Election  `json:"election,omitempty"`
	Token    Token     `json:"token,omitempty"`
	Until    time.Time `json:"until,omitzero"` // by this store's clock
}

// Validate returns an error unless each part is within its bounds.
func (p Parent) Validate() error {
	if err := p.Election.Validate(); err != nil {
		return err
	}
	switch {
	case p.Token < 1 || p.Token > MaxToken || p.Until.IsZero():
		return errors.New("a parent has no fencing token, or no end")
	case validatePeer(p.Peer) != nil:
		return validatePeer(p.Peer)
	}
	return form.Instants(p.Until)
}
