package leadership

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// MaxPeerLength is how long the name of a peer may be.
const MaxPeerLength = 64

// Via names a lease that a candidate holds in another election, so that another lease may stand on
// it.
type Via struct {
	Peer     string // another service, as this one's operator has named it; "": this one
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
	if err := v.Token.validate(); err != nil {
		return "via.fencingToken", err
	}
	return "via.peer", validatePeer(v.Peer)
}

// validatePeer accepts "", which is this service.
func validatePeer(name string) error {
	if name != "" && (len(name) > MaxPeerLength || CandidateID(name).Validate() != nil) {
		return fmt.Errorf("a peer's name is 1 to %d of A-Z, a-z, 0-9 and \"._@:-\", not %s", MaxPeerLength, shown(name))
	}
	return nil
}

// Parent is the lease that the present one stands on, and the end that it was known to have.
type Parent struct {
	Peer     string    `json:"peer,omitempty"`
	Election Election  `json:"election,omitempty"`
	Token    Token     `json:"token,omitempty"`
	Until    time.Time `json:"until,omitzero"` // by this store's clock
}

func (p Parent) validate() error {
	if err := p.Election.Validate(); err != nil {
		return err
	}
	switch {
	case p.Token < 1 || p.Token > MaxToken || p.Until.IsZero():
		return errors.New("a parent has no fencing token, or no end")
	case validatePeer(p.Peer) != nil:
		return validatePeer(p.Peer)
	}
	return validateInstants(p.Until)
}

// ParentLease is a Parent as it is now, with the candidate that leads it.
type ParentLease struct {
	Parent
	LeaderID CandidateID // "": none, it is over
	From     Token       // of its leader's grant, if operators have begun new epochs since
	// ByCandidate says that no operator has configured the election: a candidate has made it.
	ByCandidate bool
	// Least is what must be left of it for a grant to stand on it; 0: anything. Otherwise one
	// candidate after the other would be granted the last moments of a parent that dies.
	Least time.Duration
}

// leastOf is ParentLease.Least for a parent of that lease duration: as long as the shortest lease,
// and at most half of the parent's, which is always there while the parent is renewed.
func leastOf(d time.Duration) time.Duration { return min(MinLeaseDuration, d/2) }

// short reports whether too little is left for a grant.
func (p ParentLease) short(now time.Time) bool { return !now.Add(p.Least).Before(p.Until) }

// moveOn lets a lease that stands on another one last as long as that one does now, also in a new
// epoch of the same leader. If the parent is over, the lease ends at the end that its leader was
// promised. Another term of the parent is another parent: then it ends at the end that was known.
func (c *Change) moveOn(p ParentLease) {
	at := &c.Record.Standing.Parent
	if p.Token == 0 || at.Peer != p.Peer || at.Election != p.Election || at.Token < cmp.Or(p.From, p.Token) || at.Token > p.Token {
		return
	}
	promised := c.Before
	if p.LeaderID == "" {
		if p.Until = later(promised, 0); !p.Until.Before(at.Until) {
			return
		}
	} else if !p.Until.After(at.Until) {
		return
	}
	*at = p.Parent
	c.limit(promised)
}

// needsParent says that a rule has to be run again with the lease of that election.
type needsParent struct{ parent Election }

func (e *needsParent) Error() string { return fmt.Sprintf("the lease of %q is needed", e.parent) }

// refuseOrphan returns why the lease that the candidate names, or names none, is not one that a
// lease of this election can stand on.
func (s Snapshot) refuseOrphan(c AcquireCommand) error {
	r, p := s.Record, c.Parent
	switch of := r.Policy.LeadersOf; {
	case c.witness():
		return nil
	case of != "" && p.Token == 0:
		return s.refuse(NotEligible, "only the leader of an election whose name begins with %q can lead election %q; send via with that election and its fencing token", of, r.Election)
	case of != "" && !strings.HasPrefix(string(p.Election), of):
		return s.refuse(NotEligible, "election %q, which via names, does not begin with %q; lead one that does", p.Election, of)
	case of != "" && p.ByCandidate:
		return s.refuse(NotEligible, "election %q, which via names, was made by a candidate; its leader can lead election %q once an operator has configured it, without a parent", p.Election, r.Election)
	case r.Policy.Delegation.Parent == "" && p.Token > 0 && !s.Now.Before(p.Until):
		return s.refuse(NotEligible, "the lease of election %q with fencing token %d has ended, so no lease can stand on it", p.Election, p.Token)
	case r.Policy.Delegation.Parent == "" && p.Token > 0 && p.short(s.Now):
		err := s.refuse(NotEligible, "the lease of election %q with fencing token %d ends in %v unless it is renewed: too soon for another to stand on it; renew it, and try again", p.Election, p.Token, p.Until.Sub(s.Now).Round(time.Millisecond))
		err.RetryAfter = MinLeaseDuration
		return err
	}
	return nil
}

// refuseAlone returns why no lease can be granted in an election that is a part of another one: its
// parent has no leader, or has to be looked up first.
func (s Snapshot) refuseAlone(c AcquireCommand) error {
	p, parent := c.Parent, s.Record.Policy.Delegation.Parent
	switch {
	case parent == "" || c.witness():
		return nil
	case p.Token == 0 || p.Peer != "" || p.Election != parent:
		return &needsParent{parent}
	case p.LeaderID == "" || p.short(s.Now):
		return s.refuseParent(p)
	}
	return nil
}

// refuseParent tells a candidate that the parent of the election has no leader, or may have none
// soon.
func (s Snapshot) refuseParent(p ParentLease) error {
	what := "which has no leader; try again once it has one"
	if left := p.Until.Sub(s.Now); p.LeaderID != "" && left > 0 {
		what = fmt.Sprintf("whose lease ends in %v unless it is renewed; try again then", left.Round(time.Millisecond))
	}
	err := s.refuse(LeaseHeld, "election %q is a part of election %q, %s", s.Record.Election, s.Record.Policy.Delegation.Parent, what)
	err.Reason, err.RetryAfter, err.Cause = ReasonParent, MinLeaseDuration, &Cause{Code: ReasonParent}
	return err
}
