package rule

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// ParentLease is the present state of a Parent, with the candidate that leads it.
type ParentLease struct {
	leadership.Parent
	LeaderID leadership.CandidateID // "": the lease is over
	From     leadership.Token       // the token of its leader's grant, if operators have begun new epochs since
	// ByCandidate says that no operator has configured the election: a candidate has made it.
	ByCandidate bool
	// Least is the least remaining time of the parent for a grant to stand on it; 0: any. Without
	// it one candidate after the other would be granted the last moments of a parent that dies.
	Least time.Duration
}

// LeastOf returns ParentLease.Least for a parent of lease duration d: the shortest lease duration,
// but at most half of d, which a parent always has left while it is renewed.
func LeastOf(d time.Duration) time.Duration { return min(leadership.MinLeaseDuration, d/2) }

// Short reports whether too little of the parent's lease is left for a grant.
func (p ParentLease) Short(now time.Time) bool { return !now.Add(p.Least).Before(p.Until) }

// moveOn moves the limit of a lease that stands on another one to the parent's present end, even in
// a new epoch of the same leader. If the parent is over, the lease ends at the end that its leader
// was promised. Another term of the parent is another parent: then the limit stays.
func (c *Change) moveOn(p ParentLease) {
	at := &c.Record.Standing.Parent
	if p.Token == 0 || at.Peer != p.Peer || at.Election != p.Election || at.Token < cmp.Or(p.From, p.Token) || at.Token > p.Token {
		return
	}
	promised := c.Before
	if p.LeaderID == "" {
		if p.Until = form.Later(promised, 0); !p.Until.Before(at.Until) {
			return
		}
	} else if !p.Until.After(at.Until) {
		return
	}
	*at = p.Parent
	c.limit(promised)
}

// NeedsParent says that a rule must be run again with the lease of the election Parent.
type NeedsParent struct{ Parent leadership.Election }

func (e *NeedsParent) Error() string { return fmt.Sprintf("the lease of %q is needed", e.Parent) }

// refuseOrphan returns why a lease of this election cannot stand on the lease that the candidate
// names, or why it must name one; nil if all is well.
func (s *Snapshot) refuseOrphan(c AcquireCommand) error {
	r, p := s.Record, c.Parent
	switch of := r.Policy.LeadersOf; {
	case witness(c.Candidacy):
		return nil
	case of != "" && p.Token == 0:
		return s.Refuse(leadership.NotEligible, "only the leader of an election whose name begins with %q can lead election %q; send via with that election and its fencing token", of, r.Election)
	case of != "" && !strings.HasPrefix(string(p.Election), of):
		return s.Refuse(leadership.NotEligible, "election %q, which via names, does not begin with %q; lead one that does", p.Election, of)
	case of != "" && p.ByCandidate:
		return s.Refuse(leadership.NotEligible, "election %q, which via names, was made by a candidate; its leader can lead election %q once an operator has configured it, without a parent", p.Election, r.Election)
	case r.Policy.Delegation.Parent == "" && p.Token > 0 && !s.Now.Before(p.Until):
		return s.Refuse(leadership.NotEligible, "the lease of election %q with fencing token %d has ended, so no lease can stand on it", p.Election, p.Token)
	case r.Policy.Delegation.Parent == "" && p.Token > 0 && p.Short(s.Now):
		err := s.Refuse(leadership.NotEligible, "the lease of election %q with fencing token %d ends in %v unless it is renewed: too soon for another to stand on it; renew it, and try again", p.Election, p.Token, p.Until.Sub(s.Now).Round(time.Millisecond))
		err.RetryAfter = leadership.MinLeaseDuration
		return err
	}
	return nil
}

// refuseAlone returns why no lease can be granted in a delegated election: its parent has no
// leader, or must be read first (NeedsParent). It returns nil otherwise.
func (s *Snapshot) refuseAlone(c AcquireCommand) error {
	p, parent := c.Parent, s.Record.Policy.Delegation.Parent
	switch {
	case parent == "" || witness(c.Candidacy):
		return nil
	case p.Token == 0 || p.Peer != "" || p.Election != parent:
		return &NeedsParent{parent}
	case p.LeaderID == "" || p.Short(s.Now):
		return s.RefuseParent(p)
	}
	return nil
}

// RefuseParent returns the refusal for an election whose parent has no leader, or may soon have
// none.
func (s *Snapshot) RefuseParent(p ParentLease) error {
	what := "which has no leader; try again once it has one"
	if left := p.Until.Sub(s.Now); p.LeaderID != "" && left > 0 {
		what = fmt.Sprintf("whose lease ends in %v unless it is renewed; try again then", left.Round(time.Millisecond))
	}
	return s.refuseFor(leadership.Cause{Code: leadership.ReasonParent}, leadership.MinLeaseDuration,
		"election %q is a part of election %q, %s", s.Record.Election, s.Record.Policy.Delegation.Parent, what)
}

// AsParent returns the present lease for others to stand on.
func (s *Snapshot) AsParent() ParentLease {
	r := s.Record
	if !s.Live() || r.Yielded() {
		return ParentLease{Parent: leadership.Parent{Election: r.Election, Token: max(r.Token, 1), Until: form.Later(s.Now, 0)}}
	}
	return ParentLease{
		Parent:   leadership.Parent{Election: r.Election, Token: r.Token, Until: r.LeaseEnd().UTC().Truncate(form.Precision)},
		LeaderID: r.LeaderID, From: r.Standing.EpochFrom, ByCandidate: !r.Policy.Configured(), Least: LeastOf(r.LeaseDuration),
	}
}

// FollowsUp reports whether a renewal of the lease needs more than a heartbeat.
func (r *Record) FollowsUp() bool { return r.Standing.Parent.Token > 0 || r.Yielded() }
