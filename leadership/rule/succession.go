package rule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// Limits of a hand-over.
const (
	// YieldWindow is how long after a yield the successor may take the lease. Then the next in line
	// is granted.
	YieldWindow = 10 * time.Second
	// maxNamed is how many hand-overs a leader may begin in one term. All of them are remembered.
	maxNamed = 8
)

// succession is the progress of a hand-over of the present term. The successor may also follow from
// an order or a challenge: see Snapshot.successor.
type succession struct {
	To      leadership.CandidateID `json:"to,omitempty"`     // named by the leader
	Since   time.Time              `json:"since,omitzero"`   // when the leader named To
	Ends    time.Time              `json:"ends,omitzero"`    // the limit that the hand-over sets for the term
	Ready   leadership.CandidateID `json:"ready,omitempty"`  // the candidate that is ready to take the lease over
	Key     leadership.KeyHash     `json:"key,omitzero"`     // of the incarnation of Ready or Bound; no other can take over
	Yielded time.Time              `json:"yielded,omitzero"` // set once the leader has yielded: until when Ready may take the lease
	Bound   leadership.CandidateID `json:"bound,omitempty"`  // before Ready is set: the candidate whose key Key is
}

func (s succession) Validate() error {
	for _, c := range []leadership.CandidateID{s.To, s.Ready, s.Bound} {
		if c == "" {
			continue
		}
		if err := c.Validate(); err != nil {
			return err
		}
	}
	switch {
	case (s.bound() == "") != (s.Key == leadership.KeyHash{}):
		return errors.New("of a successor and its key, one is missing")
	case s.Ready != "" && s.Bound != "":
		return errors.New("a successor is ready, and one is not")
	case !s.Yielded.IsZero() && s.Ready == "", (s.To == "") != s.Ends.IsZero(), (s.To == "") != s.Since.IsZero():
		return errors.New("a hand-over has no successor, no beginning, or no end")
	}
	return form.Instants(s.Since, s.Ends, s.Yielded)
}

// bound returns the candidate of which only one incarnation, that with Key, can be the successor.
func (s succession) bound() leadership.CandidateID { return cmp.Or(s.Ready, s.Bound) }

// bind makes one incarnation of the candidate the successor, unless one of it is ready already. It
// does nothing for the zero key.
func (s *succession) bind(c leadership.CandidateID, key leadership.KeyHash) {
	if s.Ready != c && key != (leadership.KeyHash{}) {
		s.Bound, s.Key, s.Ready = c, key, ""
	}
}

// unbind allows any incarnation to be the successor again.
func (s *succession) unbind() { s.Bound, s.Key, s.Ready = "", leadership.KeyHash{}, "" }

// Yielded reports whether the leader has stopped, so that its successor may take the lease.
func (r *Record) Yielded() bool { return !r.Standing.Succession.Yielded.IsZero() }

// Leads reports whether c names the live lease of the present leader, and that has not yielded.
func (s *Snapshot) Leads(c Renewal) bool {
	return c.Holds(&s.Record) && s.Live() && !s.Record.Yielded()
}

// successor returns the candidate that the present leader is to hand over to; "" if there is none.
// An operator's order comes first, then a better candidate, then the leader's own choice.
func (s *Snapshot) successor() leadership.CandidateID {
	r := s.Record
	if r.Yielded() {
		return r.Standing.Succession.Ready
	}
	for _, o := range r.Standing.overrides(s.Now) {
		if o.Kind == leadership.OverrideAssign && o.CandidateID != r.LeaderID {
			return o.CandidateID
		}
	}
	return cmp.Or(r.Standing.Challenger, r.Standing.Succession.To)
}

// succession returns the present hand-over as callers see it; zero if there is none.
func (s *Snapshot) succession() (n leadership.Succession) {
	n.To = s.successor()
	if n.To == "" || !s.Live() {
		return leadership.Succession{}
	}
	now := s.Record.Standing.Succession
	if n.To == now.To {
		n.Since = now.Since
	}
	for _, o := range s.Record.Standing.overrides(s.Now) {
		if o.Kind == leadership.OverrideAssign && o.CandidateID == n.To {
			n.Since = o.Since
		}
	}
	n.Left = max(s.Record.EndsBy.Sub(s.Now), 0)
	n.Ready, n.Yielded = now.Ready == n.To, s.Record.Yielded()
	return n
}

func withinOf(c leadership.HandOver) time.Duration { return cmp.Or(c.Within, leadership.DefaultWithin) }

// handOvers are the hand-overs that the leader has begun under a token, so that a late copy of one
// is recognized: digests, separated by spaces.
type handOvers struct {
	Token leadership.Token `json:"fencingToken"`
	Words string           `json:"words"`
}

func (h handOvers) Validate() error {
	if n := len(strings.Fields(h.Words)); n < 1 || n > maxNamed {
		return fmt.Errorf("%d hand-overs are named", n)
	}
	return h.Token.Validate()
}

func (h handOvers) under(t leadership.Token) []string {
	if h.Token != t {
		return nil
	}
	return strings.Fields(h.Words)
}

// wordsOf returns a digest of the call as the leader made it.
func wordsOf(c leadership.HandOver) string {
	if c.Chosen {
		c.To = ""
	}
	return form.Digest(fmt.Sprintf("%q %d %q", c.To, withinOf(c), c.Reason))
}

func handOver(s Snapshot, c leadership.HandOver) (Change, error) {
	lease := leaseOf(c.LeaseRequest)
	r := s.Record
	s.Halts = c.Halts
	if !s.Leads(lease) {
		return Change{}, s.RefuseLost(lease)
	}
	if r.Standing.Seat > 0 {
		return Change{}, s.Refuse(leadership.NotEligible, "election %q is a seat, which is not handed over; release it", r.Election)
	}
	words := wordsOf(c)
	if better := r.Standing.Challenger; better != "" && better != c.To {
		if !c.Chosen {
			return Change{}, s.Refuse(leadership.NotEligible, "%q is the better candidate of election %q, and has challenged its leader; hand it over to no other", better, r.Election)
		}
		c.To, c.ToKey = better, leadership.KeyHash{}
	}
	for _, barrier := range s.barriers(c.To, nil) {
		switch barrier.Code {
		case leadership.ReasonAssigned:
			return Change{}, s.Refuse(leadership.NotEligible, "an operator has assigned election %q to %q; hand it over to no other", r.Election, barrier.Only)
		case leadership.ReasonBanned, leadership.ReasonPaused, leadership.ReasonHalted:
			return Change{}, s.refuseBarred(c.To, []leadership.Cause{barrier})
		}
	}
	named := r.Standing.Named.under(r.Token)
	switch to := r.Standing.Succession.To; {
	case to == c.To, c.Chosen && to != "":
		return Change{}, nil
	case slices.Contains(named, words):
		return Change{}, s.Refuse(leadership.NotEligible, "this hand-over of election %q to %q was made before, and then replaced or taken back; if it is to be made again, give another reason", r.Election, c.To)
	case len(named) == maxNamed:
		return Change{}, s.Refuse(leadership.NotEligible, "the leader of election %q has named %d successors in this term, and may name no more; release the lease", r.Election, maxNamed)
	}
	ch := s.change()
	promised, now := r.LeaseEnd(), &ch.Record.Standing.Succession
	next := succession{To: c.To, Since: form.Later(s.Now, 0), Ends: form.Later(s.Now, withinOf(c))}
	if next.Ends.Before(promised) {
		next.Ends = form.Later(promised, 0)
	}
	if now.bound() == c.To {
		next.Bound, next.Key, next.Ready = now.Bound, now.Key, now.Ready
	}
	next.bind(c.To, c.ToKey)
	*now, ch.Record.Standing.Named = next, handOvers{r.Token, strings.Join(append(named, words), " ")}
	ch.limit(promised)
	ch.announce(leadership.EventHandingOver, "")
	ch.explain(c.Reason, leadership.Detail{Because: string(leadership.EndsHandOver), EndsBy: ch.Record.EndsBy.UTC(), To: c.To})
	return ch, nil
}

func sayReady(s Snapshot, cmd leadership.SayReady) (Change, error) {
	c := leaseOf(cmd.LeaseRequest)
	r := s.Record
	ch := s.change()
	now := &ch.Record.Standing.Succession
	switch {
	case !s.Exists():
		return Change{}, s.RefuseUnseen()
	case c.Token != r.Token && !r.GoesOnFrom(c.Token):
		return Change{}, s.Refuse(leadership.TokenStale, "fencing token %d of election %q is not that of the present term, which has %d; a candidate is ready in the term in which it was named", c.Token, r.Election, r.Token)
	case !s.Live() || s.successor() != c.CandidateID:
		return Change{}, s.Refuse(leadership.NotEligible, "%q is not the successor in election %q; wait for a hand-over to it, which its events tell of, or acquire", c.CandidateID, r.Election)
	case r.Standing.Seat > 0:
		return Change{}, s.Refuse(leadership.NotEligible, "election %q is a seat, which is not handed over: wait in line until its leader releases it", r.Election)
	case now.Ready == c.CandidateID && now.Key.Equal(c.KeyHash):
		return Change{}, nil
	case now.bound() == c.CandidateID && !now.Key.Equal(c.KeyHash):
		err := s.Refuse(leadership.LeaseHeld, "the successor in election %q is %q with another key; wait in line as the other candidates do", r.Election, c.CandidateID)
		err.Reason, err.RetryAfter = leadership.ReasonIncarnation, max(r.LeaseEnd().Sub(s.Now), 0)
		return Change{}, err
	default:
		now.Ready, now.Key, now.Bound = c.CandidateID, c.KeyHash, ""
	}
	ch.announce(leadership.EventReady, "")
	ch.explain("", leadership.Detail{CandidateID: c.CandidateID})
	return ch, nil
}

func sayServing(s Snapshot, cmd leadership.SayServing) (Change, error) {
	c := leaseOf(cmd.LeaseRequest).after(s.Record)
	switch {
	case !s.Leads(c):
		return Change{}, s.RefuseLost(c)
	case !s.Record.Standing.NotServing:
		return Change{}, nil
	}
	ch := s.change()
	ch.Record.Standing.NotServing = false
	ch.announce(leadership.EventServing, "")
	return ch, nil
}

func yield(s Snapshot, cmd leadership.Yield) (Change, error) {
	r := s.Record
	c := leaseOf(cmd.LeaseRequest).after(r)
	switch now := r.Standing.Succession; {
	case c.Token > r.Token, c.Token == r.Token && r.LeaderID != "" && !c.Holds(&r):
		return Change{}, s.RefuseLost(c)
	case c.Token < r.Token, r.LeaderID == "", r.Yielded():
		return Change{}, nil
	case !s.Live():
		return Change{}, s.RefuseLost(c)
	case now.Ready == "" || now.Ready != s.successor():
		return Change{}, s.Refuse(leadership.NotReady, "the successor in election %q is not ready; yield again once it is, or release the lease", r.Election)
	case r.yields(s.Now) != "":
		return Change{}, s.Refuse(leadership.NotReady, "the term in election %q ends for another reason (%s); release the lease", r.Election, r.EndsBecause)
	}
	if why, barred := s.barrier(r.Standing.Succession.Ready, nil); barred {
		return Change{}, s.Refuse(leadership.NotReady, "the successor in election %q cannot be granted the lease now (%s); name another one, or release the lease", r.Election, why.Code)
	}
	ch := s.change()
	now := &ch.Record.Standing.Succession
	if now.Yielded = form.Later(s.Now, YieldWindow); r.LeaseEnd().Before(now.Yielded) {
		now.Yielded = form.Later(r.LeaseEnd(), 0)
	}
	ch.Record.EndsBy, ch.Record.EndsBecause = ch.Record.Standing.end() // may be earlier than promised: the leader gives that up
	ch.announce(leadership.EventYielded, "")
	ch.explain("", leadership.Detail{To: now.Ready})
	return ch, nil
}

// barrier returns the first cause other than the present leader that forbids a grant to the
// candidate.
func (s *Snapshot) barrier(c leadership.CandidateID, principal []string) (first leadership.Cause, barred bool) {
	for _, one := range s.barriers(c, principal) {
		if one.Code != leadership.ReasonHeld {
			return one, true
		}
	}
	return leadership.Cause{}, false
}

// takesOver reports whether the candidate is the successor to which the leader has yielded.
func (s *Snapshot) takesOver(c AcquireCommand) bool {
	now := s.Record.Standing.Succession
	return s.Live() && s.Record.Yielded() && now.Ready == c.CandidateID && now.Key.Equal(c.KeyHash) && !witness(c.Candidacy)
}

// takeOver ends the term of the leader that has yielded and grants the lease to its successor in
// one change, so no reader sees a vacancy. Standing orders and the quorum count as for any
// candidate.
func (s *Snapshot) takeOver(c AcquireCommand) (Change, error) {
	if why, barred := s.barrier(c.CandidateID, c.Principal); barred {
		return Change{}, s.refuseBarred(c.CandidateID, []leadership.Cause{why})
	}
	if err := s.refuseGrant(c); err != nil {
		return Change{}, err
	}
	q := s.Record.Policy.Ballot.Quorum
	if have, need := count(c.present(q)), q.Needed(); have < need {
		return Change{}, s.refuseFor(leadership.Cause{Code: leadership.ReasonQuorum, Have: have, Need: need}, quorumRetry,
			"%q may take election %q over once %d members of the electorate are present at its instance, which knows of %d", c.CandidateID, s.Record.Election, need, have)
	}
	ch := s.change()
	ch.Record.Standing.endProbation(s.Record.LeaderID, s.Now)
	ch.vacate(leadership.EventReleased, s.Now, 0)
	ch.Record.Standing.Ended = ended{ch.Record.Token, leadership.EndsHandOver}
	ch.explain("", leadership.Detail{EndsBecause: leadership.EndsHandOver, To: c.CandidateID})
	ch.grant(c, s.Now)
	return ch, nil
}

// ended is why the last term ended, for the leader that inherits from it. It is zero after a
// release, so that most records need not store it.
type ended struct {
	Token   leadership.Token     `json:"token,omitempty"`
	Because leadership.EndReason `json:"because,omitempty"` // "": unknown
}

func (e ended) Validate() error {
	if len(e.Because) > maxEndReasonBytes {
		return fmt.Errorf("the reason for the end of the last term has %d bytes", len(e.Because))
	}
	return e.Token.Validate()
}

// endedBy returns why a term ended, if its last event has that type.
func endedBy(t leadership.EventType, token leadership.Token, because leadership.EndReason) ended {
	switch t {
	case leadership.EventReleased:
		return ended{}
	case leadership.EventExpired:
		return ended{token, cmp.Or(because, leadership.EndsExpired)}
	case leadership.EventDeposed:
		return ended{token, leadership.EndsDeposed}
	}
	return ended{token, leadership.EndsDeleted}
}

// because returns why the term with the token ended; "" if unknown.
func (e ended) because(t leadership.Token) leadership.EndReason {
	if e.Token == t {
		return e.Because
	}
	return leadership.EndsReleased
}
