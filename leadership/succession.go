package leadership

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limits of a hand-over.
const (
	MinWithin     = time.Second
	MaxWithin     = 10 * time.Minute
	DefaultWithin = 30 * time.Second
	// YieldWindow is how long after a yield the successor may take the lease. Then the line goes
	// on.
	YieldWindow = 10 * time.Second
	// maxNamed is how many hand-overs a leader may name in one term. All of them are remembered.
	maxNamed = 8
)

// succession is a hand-over of the present term, as far as the leader and its successor have come.
// Who the successor is may also follow from an order or a challenge: see Record.successor.
type succession struct {
	To      CandidateID `json:"to,omitempty"`     // named by the leader
	Since   time.Time   `json:"since,omitzero"`   // when that was
	Ends    time.Time   `json:"ends,omitzero"`    // the latest end of the term that it sets
	Ready   CandidateID `json:"ready,omitempty"`  // the candidate that is ready to take the lease over
	Key     KeyHash     `json:"key,omitzero"`     // of that incarnation; no other takes it
	Yielded time.Time   `json:"yielded,omitzero"` // the leader has stopped; until then Ready may take the lease
	Bound   CandidateID `json:"bound,omitempty"`  // until one is ready: the candidate whose key Key is
}

func (s succession) validate() error {
	for _, c := range []CandidateID{s.To, s.Ready, s.Bound} {
		if c == "" {
			continue
		}
		if err := c.Validate(); err != nil {
			return err
		}
	}
	switch {
	case (s.bound() == "") != (s.Key == KeyHash{}):
		return errors.New("of a successor and its key, one is missing")
	case s.Ready != "" && s.Bound != "":
		return errors.New("a successor is ready, and one is not")
	case !s.Yielded.IsZero() && s.Ready == "", (s.To == "") != s.Ends.IsZero(), (s.To == "") != s.Since.IsZero():
		return errors.New("a hand-over has no successor, no beginning, or no end")
	}
	return validateInstants(s.Since, s.Ends, s.Yielded)
}

// bound is the candidate of which one incarnation alone can be the successor, ready or not.
func (s succession) bound() CandidateID { return cmp.Or(s.Ready, s.Bound) }

// bind makes one incarnation of the candidate the successor, unless one is ready already.
func (s *succession) bind(c CandidateID, key KeyHash) {
	if s.Ready != c && key != (KeyHash{}) {
		s.Bound, s.Key, s.Ready = c, key, ""
	}
}

// unbind forgets which incarnation is the successor.
func (s *succession) unbind() { s.Bound, s.Key, s.Ready = "", KeyHash{}, "" }

// yielded reports whether the leader has stopped, so that its successor may take the lease.
func (r Record) yielded() bool { return !r.Standing.Succession.Yielded.IsZero() }

// leads reports whether c names the lease of the present leader, which has not yielded.
func (s Snapshot) leads(c Renewal) bool { return c.holds(s.Record) && s.Live() && !s.Record.yielded() }

// successor is the candidate that the present leader is to hand over to; "" if there is none. An
// operator's order comes first, then a better candidate, then the leader's own choice.
func (s Snapshot) successor() CandidateID {
	r := s.Record
	if r.yielded() {
		return r.Standing.Succession.Ready
	}
	for _, o := range r.Standing.overrides(s.Now) {
		if o.Kind == OverrideAssign && o.CandidateID != r.LeaderID {
			return o.CandidateID
		}
	}
	return cmp.Or(r.Standing.Challenger, r.Standing.Succession.To)
}

// Succession is a hand-over that is under way, as callers see it.
type Succession struct {
	To      CandidateID   // the successor; "" if there is no hand-over
	Since   time.Time     // when the leader, or an operator, named it; zero of a challenger
	Left    time.Duration // until the present term ends, whether or not the successor is ready
	Ready   bool          // the successor has loaded what it needs
	Yielded bool          // the leader has stopped, and the successor may acquire
}

// succession is the hand-over that is under way.
func (s Snapshot) succession() (n Succession) {
	n.To = s.successor()
	if n.To == "" || !s.Live() {
		return Succession{}
	}
	now := s.Record.Standing.Succession
	if n.To == now.To {
		n.Since = now.Since
	}
	for _, o := range s.Record.Standing.overrides(s.Now) {
		if o.Kind == OverrideAssign && o.CandidateID == n.To {
			n.Since = o.Since
		}
	}
	n.Left = max(s.Record.EndsBy.Sub(s.Now), 0)
	n.Ready, n.Yielded = now.Ready == n.To, s.Record.yielded()
	return n
}

// HandOver names the candidate that the caller's term is handed over to. The term ends within the
// time given, but not before the end that the leader was promised: then the line goes on, whether
// or not the successor has come. Another successor may be named while the leader has not yielded;
// the time counts anew then. Idempotent for the same successor. A hand-over that was replaced, or
// taken back, is refused if it comes again in the same words: it may be a copy that is late. One to
// a successor that was chosen for the leader leaves the one that was named before. Once a better
// candidate has challenged the leader, it is the successor.
//
// With ToKey the incarnation with that key is the successor, and no other of the same candidate id:
// not one that a third party starts, and not one that the candidate itself starts after a crash.
// Then the lease ends at EndsBy.
//
// Errors: LeaseLost; LeaseHeld, with what bars the successor; NotEligible, if an order or a
// challenge has named another one, or if it was named before.
type HandOver struct {
	LeaseRequest
	To     CandidateID   // "": the best candidate that waits, as far as the Instance knows; a Service alone knows none
	Chosen bool          // To was chosen for the leader, which takes any; set by the Instance that has chosen
	ToKey  KeyHash       // of the incarnation that is meant, set by the Instance in whose line it waits; zero: of the first that says it is ready
	Within time.Duration // the term ends so long from now at the latest: MinWithin to MaxWithin; 0: DefaultWithin
	Reason string        // for people: one line of at most MaxReasonBytes bytes; may be empty
}

// Name implements Command.
func (HandOver) Name() string { return "handOver" }

// Target implements Command.
func (c HandOver) Target() Target { return c.acting() }

// Validate implements Command.
func (c HandOver) Validate() error {
	if err := c.LeaseRequest.Validate(); err != nil {
		return err
	}
	if err := c.To.Validate(); err != nil {
		return invalid("to", err)
	}
	switch d := c.within(); {
	case c.To == c.CandidateID:
		return invalid("to", errors.New("to is another candidate than the leader"))
	case d < MinWithin || d > MaxWithin || d%time.Millisecond != 0:
		return invalid("within", fmt.Errorf("within is from %s to %s in whole milliseconds, not %s", spoken(MinWithin), spoken(MaxWithin), spoken(d)))
	}
	return fields("reason", validateLine("reason", c.Reason))
}

func (c HandOver) within() time.Duration { return cmp.Or(c.Within, DefaultWithin) }

// handOvers are those that the leader has named under a token, so that a late copy of one is known:
// digests, with spaces between.
type handOvers struct {
	Token Token  `json:"fencingToken"`
	Words string `json:"words"`
}

func (h handOvers) validate() error {
	if n := len(strings.Fields(h.Words)); n < 1 || n > maxNamed {
		return fmt.Errorf("%d hand-overs are named", n)
	}
	return h.Token.validate()
}

func (h handOvers) under(t Token) []string {
	if h.Token != t {
		return nil
	}
	return strings.Fields(h.Words)
}

// words stand for the call, as the leader has made it.
func (c HandOver) words() string {
	if c.Chosen {
		c.To = ""
	}
	return digestOf(fmt.Sprintf("%q %d %q", c.To, c.within(), c.Reason))
}

// Apply implements Command.
func (c HandOver) Apply(s Snapshot) (Change, error) {
	lease := c.lease()
	r := s.Record
	if !s.leads(lease) {
		return Change{}, s.refuseLost(lease)
	}
	words := c.words()
	if better := r.Standing.Challenger; better != "" && better != c.To {
		if !c.Chosen {
			return Change{}, s.refuse(NotEligible, "%q is the better candidate of election %q, and has challenged its leader; hand it over to no other", better, r.Election)
		}
		c.To, c.ToKey = better, KeyHash{}
	}
	for _, barrier := range s.barriers(c.To, nil) {
		switch barrier.Code {
		case ReasonAssigned:
			return Change{}, s.refuse(NotEligible, "an operator has assigned election %q to %q; hand it over to no other", r.Election, barrier.Only)
		case ReasonBanned, ReasonPaused:
			return Change{}, s.refuseBarred(c.To, []Cause{barrier})
		}
	}
	named := r.Standing.Named.under(r.Token)
	switch to := r.Standing.Succession.To; {
	case to == c.To, c.Chosen && to != "":
		return Change{}, nil
	case slices.Contains(named, words):
		return Change{}, s.refuse(NotEligible, "this hand-over of election %q to %q was made before, and then replaced or taken back; if it is to be made again, give another reason", r.Election, c.To)
	case len(named) == maxNamed:
		return Change{}, s.refuse(NotEligible, "the leader of election %q has named %d successors in this term, and may name no more; release the lease", r.Election, maxNamed)
	}
	ch := s.change()
	promised, now := r.LeaseEnd(), &ch.Record.Standing.Succession
	next := succession{To: c.To, Since: later(s.Now, 0), Ends: later(s.Now, c.within())}
	if next.Ends.Before(promised) {
		next.Ends = later(promised, 0)
	}
	if now.bound() == c.To {
		next.Bound, next.Key, next.Ready = now.Bound, now.Key, now.Ready
	}
	next.bind(c.To, c.ToKey)
	*now, ch.Record.Standing.Named = next, handOvers{r.Token, strings.Join(append(named, words), " ")}
	ch.limit(promised)
	ch.announce(EventHandingOver, "")
	ch.explain(c.Reason, Detail{Because: string(EndsHandOver), EndsBy: ch.Record.EndsBy.UTC(), To: c.To})
	return ch, nil
}

// SayReady notes that the successor may take the lease over or, with Config.Promotion, that the
// leader itself is ready. c has the id and the key of that candidate, and the token of the present
// leader: a copy that comes in a later term binds no incarnation that has gone. If it is not said
// yet which incarnation of the successor is meant (see HandOver), it is the one that says so first:
// no other can take its place. Idempotent.
//
// Errors: TokenStale, in another term; NotEligible, if the caller is neither; LeaseHeld with
// ReasonIncarnation.
type SayReady struct{ LeaseRequest }

// Name implements Command.
func (SayReady) Name() string { return "sayReady" }

// Apply implements Command.
func (cmd SayReady) Apply(s Snapshot) (Change, error) {
	c := cmd.lease()
	r := s.Record
	ch := s.change()
	now := &ch.Record.Standing.Succession
	switch {
	case !s.exists():
		return Change{}, s.refuseUnseen()
	case c.Token != r.Token && !r.goesOnFrom(c.Token):
		return Change{}, s.refuse(TokenStale, "fencing token %d of election %q is not that of the present term, which has %d; a candidate is ready in the term in which it was named", c.Token, r.Election, r.Token)
	case s.Live() && !r.yielded() && r.LeaderID == c.CandidateID && r.KeyHash.Equal(c.KeyHash):
		if !r.Standing.Unready {
			return Change{}, nil
		}
		ch.Record.Standing.Unready = false
	case !s.Live() || s.successor() != c.CandidateID:
		return Change{}, s.refuse(NotEligible, "%q is not the successor in election %q; wait for a hand-over to it, which its events tell of, or acquire", c.CandidateID, r.Election)
	case now.Ready == c.CandidateID && now.Key.Equal(c.KeyHash):
		return Change{}, nil
	case now.bound() == c.CandidateID && !now.Key.Equal(c.KeyHash):
		err := s.refuse(LeaseHeld, "the successor in election %q is %q with another key; wait in line as the other candidates do", r.Election, c.CandidateID)
		err.Reason, err.RetryAfter = ReasonIncarnation, max(r.LeaseEnd().Sub(s.Now), 0)
		return Change{}, err
	default:
		now.Ready, now.Key, now.Bound = c.CandidateID, c.KeyHash, ""
	}
	ch.announce(EventReady, "")
	ch.explain("", Detail{CandidateID: c.CandidateID})
	return ch, nil
}

// Yield says that the leader has stopped: from now on it must not act. The successor takes the
// lease with its next acquire, in one commit with the end of this term. If it has not come within
// YieldWindow, and by the end of the lease, the line goes on.
//
// As Release does, it leaves a term that is over as it is. A caller that has sent a yield must not
// act as the leader again, whatever the answer: a copy that is still under way counts when it
// arrives, also after another one was refused.
//
// Errors: NotReady, while the successor has not said that it is ready, or is barred, or if a limit
// ends the term within half a lease: yield again later, or release; LeaseLost.
type Yield struct{ LeaseRequest }

// Name implements Command.
func (Yield) Name() string { return "yield" }

// Apply implements Command.
func (cmd Yield) Apply(s Snapshot) (Change, error) {
	r := s.Record
	c := cmd.lease().after(r)
	switch now := r.Standing.Succession; {
	case c.Token > r.Token, c.Token == r.Token && r.LeaderID != "" && !c.holds(r):
		return Change{}, s.refuseLost(c)
	case c.Token < r.Token, r.LeaderID == "", r.yielded():
		return Change{}, nil
	case !s.Live():
		return Change{}, s.refuseLost(c)
	case now.Ready == "" || now.Ready != s.successor():
		return Change{}, s.refuse(NotReady, "the successor in election %q is not ready; yield again once it is, or release the lease", r.Election)
	case r.yields(s.Now) != "":
		return Change{}, s.refuse(NotReady, "the term in election %q ends for another reason (%s); release the lease", r.Election, r.EndsBecause)
	}
	if why, barred := s.barrier(r.Standing.Succession.Ready, nil); barred {
		return Change{}, s.refuse(NotReady, "the successor in election %q cannot be granted the lease now (%s); name another one, or release the lease", r.Election, why.Code)
	}
	ch := s.change()
	now := &ch.Record.Standing.Succession
	if now.Yielded = later(s.Now, YieldWindow); r.LeaseEnd().Before(now.Yielded) {
		now.Yielded = later(r.LeaseEnd(), 0)
	}
	ch.Record.EndsBy, ch.Record.EndsBecause = ch.Record.Standing.end() // no promise is broken: the leader gives it up
	ch.announce(EventYielded, "")
	ch.explain("", Detail{To: now.Ready})
	return ch, nil
}

// barrier is the first of what stands against a grant to the candidate, beside the present leader.
func (s Snapshot) barrier(c CandidateID, principal []string) (first Cause, barred bool) {
	for _, one := range s.barriers(c, principal) {
		if one.Code != ReasonHeld {
			return one, true
		}
	}
	return Cause{}, false
}

// takesOver reports whether the candidate is the successor to which the leader has yielded.
func (s Snapshot) takesOver(c AcquireCommand) bool {
	now := s.Record.Standing.Succession
	return s.Live() && s.Record.yielded() && now.Ready == c.CandidateID && now.Key.Equal(c.KeyHash) && !c.witness()
}

// takeOver ends the term of the leader that has yielded, and grants the lease to its successor: no
// reader sees a vacancy between. Standing orders and the quorum count as for any candidate.
func (s Snapshot) takeOver(c AcquireCommand) (Change, error) {
	if why, barred := s.barrier(c.CandidateID, c.Principal); barred {
		return Change{}, s.refuseBarred(c.CandidateID, []Cause{why})
	}
	if err := s.refuseGrant(c); err != nil {
		return Change{}, err
	}
	q := s.Record.Policy.Ballot.Quorum
	if have, need := count(c.present(q)), q.Needed(); have < need {
		err := s.refuse(LeaseHeld, "%q may take election %q over once %d members of the electorate are present at its instance, which knows of %d", c.CandidateID, s.Record.Election, need, have)
		err.Reason, err.RetryAfter, err.Cause = ReasonQuorum, quorumRetry, &Cause{Code: ReasonQuorum, Have: have, Need: need}
		return Change{}, err
	}
	ch := s.change()
	ch.Record.Standing.endProbation(s.Record.LeaderID, s.Now)
	ch.vacate(EventReleased, s.Now, 0)
	ch.Record.Standing.Ended = ended{ch.Record.Token, EndsHandOver}
	ch.explain("", Detail{EndsBecause: EndsHandOver, To: c.CandidateID})
	ch.grant(c, s.Now)
	return ch, nil
}

// ended is why the last term ended, for the leader that inherits from it. Of a release it says
// nothing, so that most records need not have it.
type ended struct {
	Token   Token     `json:"token,omitempty"`
	Because EndReason `json:"because,omitempty"` // "": not known
}

func (e ended) validate() error {
	if len(e.Because) > maxEndReasonBytes {
		return fmt.Errorf("the reason for the end of the last term has %d bytes", len(e.Because))
	}
	return e.Token.validate()
}

// endedBy is why a term ended with an event of the type.
func endedBy(t EventType, token Token, because EndReason) ended {
	switch t {
	case EventReleased:
		return ended{}
	case EventExpired:
		return ended{token, cmp.Or(because, EndsExpired)}
	case EventDeposed:
		return ended{token, EndsDeposed}
	}
	return ended{token, EndsDeleted}
}

// because is why the term with the token ended, as far as that is known.
func (e ended) because(t Token) EndReason {
	if e.Token == t {
		return e.Because
	}
	return EndsReleased
}
