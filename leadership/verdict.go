package leadership

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verdict is what a verifier says of a leader's work.
type Verdict string

// The verdicts.
const (
	VerdictBad  Verdict = "bad"
	VerdictGood Verdict = "good"
)

// Judge is a verdict on the work that was done under a token: of each principal the last counts. So
// many bad ones as the policy says trip. Idempotent: a verdict that stands writes nothing, and then
// ignores the condition.
//
// Errors: NotFound; TokenStale, if the term is over; RevisionMismatch; LimitExceeded, if too many
// have judged.
type Judge struct {
	Election Election
	Token    Token
	Verdict  Verdict
	Evidence string // for people: one line of 1 to MaxReasonBytes bytes
	Actor    string // the principal that judges

	IfRevision Revision // as in Delete
}

// Name implements Command.
func (Judge) Name() string { return "judge" }

// Target implements Command.
func (c Judge) Target() Target { return Target{Election: c.Election, Reason: c.Evidence} }

// Validate implements Command.
func (c Judge) Validate() error {
	if err := c.Token.validate(); err != nil {
		return invalid("fencingToken", err)
	}
	if c.Verdict != VerdictBad && c.Verdict != VerdictGood {
		return invalid("verdict", fmt.Errorf("verdict is %q or %q, not %s", VerdictBad, VerdictGood, shown(string(c.Verdict))))
	}
	if err := validateWordAs("evidence", c.Actor, c.Evidence); err != nil {
		return err
	}
	return validateCondition(c.IfRevision)
}

// verdicts are those on the present term: digests of principals, with spaces between.
type verdicts struct {
	Bad  string `json:"bad,omitempty"`
	Good string `json:"good,omitempty"`
}

func (v verdicts) validate() error {
	if len(strings.Fields(v.Bad)) > MaxVerdicts || len(strings.Fields(v.Good)) > MaxVerdicts {
		return errors.New("it has more verdicts than are counted")
	}
	return nil
}

// Apply implements Command.
func (c Judge) Apply(s Snapshot) (Change, error) {
	r := s.Record
	if !s.exists() {
		return Change{}, s.refuseUnseen()
	}
	digest := digestOf(c.Actor)
	if c.Token == r.Token && r.Standing.Deposed.Token == c.Token && r.LeaderID == "" {
		return Change{}, nil // the term has ended for this reason, or for another
	}
	if err := Check(s, c.Token); err != nil {
		return Change{}, err
	}
	bad, good := strings.Fields(r.Standing.Verdicts.Bad), strings.Fields(r.Standing.Verdicts.Good)
	to, from := &bad, &good
	if c.Verdict == VerdictGood {
		to, from = &good, &bad
	}
	if slices.Contains(*to, digest) {
		return Change{}, nil
	}
	if err := s.require(c.IfRevision); err != nil {
		return Change{}, err
	}
	*from = slices.DeleteFunc(*from, func(d string) bool { return d == digest })
	if *to = append(*to, digest); len(*to) > MaxVerdicts {
		return Change{}, s.refuse(LimitExceeded, "%d principals have given this verdict on the present term of election %q, and more are not counted", MaxVerdicts, r.Election)
	}
	ch := s.change()
	ch.Record.Standing.Verdicts = verdicts{strings.Join(bad, " "), strings.Join(good, " ")}
	ch.announce(EventJudged, "")
	ch.explain(c.Evidence, Detail{Bad: new(len(bad)), Good: new(len(good)), Verdict: c.Verdict})
	ch.Events[0].Actor = c.Actor
	p := r.Policy.Term
	if p.Verdicts == 0 || len(bad) < p.Verdicts {
		return ch, nil
	}
	t := trip{fmt.Sprintf("%d verifiers judged its work bad", len(bad)), Detail{BadVerdicts: len(bad), Verdicts: p.Verdicts}}
	if p.OnTrip == TripNotify {
		ch.notify(t)
	} else {
		ch.depose(s, t)
	}
	return ch, nil
}

// StepDown is Release with a reason. With For its candidate is banned for a while. Candidates take
// at most half of the room for overrides, so that operators can always give orders. A caller that
// has sent one must not act as the leader again, whatever the answer: see the package's "Repeats".
//
// Errors: LeaseLost, as Release; LimitExceeded, if there is no room for the ban: release then.
type StepDown struct {
	LeaseRequest
	Reason string        // for people: one line of 1 to MaxReasonBytes bytes
	For    time.Duration // how long the candidate is not granted: 1 s to 30 days; 0: not at all
}

// Name implements Command.
func (StepDown) Name() string { return "stepDown" }

// Validate implements Command.
func (c StepDown) Validate() error {
	if err := c.LeaseRequest.Validate(); err != nil {
		return err
	}
	if err := validateWordAs("reason", "-", c.Reason); err != nil || c.For == 0 {
		return err
	}
	return fields("for", OrderBounds.Check("for", c.For))
}

// Apply implements Command.
func (c StepDown) Apply(s Snapshot) (Change, error) {
	ch, err := Release{c.LeaseRequest}.Apply(s)
	if err != nil || ch.Empty() || !s.Live() {
		return ch, err
	}
	if ch.Events[len(ch.Events)-1].Reason = c.Reason; c.For == 0 {
		return ch, nil
	}
	since := later(s.Now, 0)
	o := Override{
		ID: OverrideID(fmt.Sprintf("%s-%d", OverrideBan, ch.Record.Revision)), Kind: OverrideBan, CandidateID: c.CandidateID,
		Actor: string(c.CandidateID), Reason: c.Reason, Since: since, Until: since.Add(c.For),
	}
	overrides := &ch.Record.Standing.Overrides // an operator's ban of the candidate stays, too
	*overrides = NewOverrides(append(ch.Record.Standing.overrides(s.Now), o))
	detail := o.detail()
	detail.EndsBecause = s.Record.yields(s.Now)
	ch.explain(c.Reason, detail)
	if err := overrides.limit(s, MaxOverrides/2, maxOverrideBytes/2); err != nil {
		return Change{}, s.refuse(LimitExceeded, "election %q has too many overrides for a candidate to add one of its own; step down without for", s.Record.Election)
	}
	return ch, nil
}

// RequestApproval tells operators that the leader needs an approval, once until they have answered.
// The event says until when.
//
// Errors: LeaseLost; InvalidArgument, if the election's policy needs no approval.
type RequestApproval struct {
	LeaseRequest
	Note string // for people: one line of 1 to MaxReasonBytes bytes
}

// Name implements Command.
func (RequestApproval) Name() string { return "requestApproval" }

// Target implements Command.
func (c RequestApproval) Target() Target { return c.acting() }

// Validate implements Command.
func (c RequestApproval) Validate() error {
	if err := c.LeaseRequest.Validate(); err != nil {
		return err
	}
	return validateWordAs("note", "-", c.Note)
}

// Apply implements Command.
func (c RequestApproval) Apply(s Snapshot) (Change, error) {
	r := s.Record
	switch {
	case !s.leads(c.lease()):
		return Change{}, s.refuseLost(c.lease())
	case r.Policy.Term.Approval.Every == 0:
		return Change{}, invalid("election", fmt.Errorf("election %q needs no approval; its policy has no approval.every", r.Election))
	case r.Standing.Approval.Asked:
		return Change{}, nil
	}
	ch := s.change()
	ch.Record.Standing.Approval.Asked = true
	ch.announce(EventApprovalRequested, "")
	ch.explain(c.Note, Detail{EndsBy: r.Standing.Ends.Approval}) // none if the policy is newer than the term
	return ch, nil
}
