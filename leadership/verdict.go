package leadership

import (
	"cmp"
	"fmt"
	"time"

	"regent/leadership/internal/form"
)

// Verdict is a verifier's judgement of a leader's work.
type Verdict string

const (
	VerdictBad  Verdict = "bad"
	VerdictGood Verdict = "good"
)

// Judge gives a verdict on the work that was done under a token. The last verdict of each principal
// counts, and TermPolicy.Verdicts bad ones trip. Idempotent: writes nothing if the principal's
// verdict is already this one, and then ignores the condition.
//
// Errors: NotFound; TokenStale, if the term is over; RevisionMismatch; LimitExceeded, if too many
// principals have judged.
type Judge struct {
	Election Election
	Token    Token
	Verdict  Verdict
	Evidence string // for people: one line of 1 to MaxReasonBytes bytes
	Actor    string // the principal that judges

	IfRevision Revision // as in Delete
}

func (Judge) Name() string { return "judge" }

func (c Judge) Target() Target { return Target{Election: c.Election, Reason: c.Evidence} }

func (c Judge) Validate() error {
	if err := c.Token.Validate(); err != nil {
		return Invalid("fencingToken", err)
	}
	if c.Verdict != VerdictBad && c.Verdict != VerdictGood {
		return Invalid("verdict", fmt.Errorf("verdict is %q or %q, not %s", VerdictBad, VerdictGood, form.Shown(string(c.Verdict))))
	}
	return cmp.Or(validateWordAs("evidence", c.Actor, c.Evidence), validateCondition(c.IfRevision))
}

// StepDown is Release with a reason. With For it also bans the candidate for that time. Such bans
// may take up to half of MaxOverrides, so that operators can always give orders. A caller that has
// sent a step-down must not act as the leader again, whatever the answer: see the package's
// "Repeats".
//
// Errors: LeaseLost, as Release; LimitExceeded, if there is no room for the ban: call Release then.
type StepDown struct {
	LeaseRequest
	Reason string        // for people: one line of 1 to MaxReasonBytes bytes
	For    time.Duration // how long the candidate is not granted: 1 s to 30 days; 0: not at all
}

func (StepDown) Name() string { return "stepDown" }

func (c StepDown) Validate() error {
	if err := cmp.Or(c.LeaseRequest.Validate(), validateWordAs("reason", "-", c.Reason)); err != nil || c.For == 0 {
		return err
	}
	return fields("for", OrderBounds.Check("for", c.For))
}

// RequestApproval tells operators, by an event, that the leader needs an approval and until when. A
// repeat writes nothing until they have answered, unless it is the first to ask for a new epoch.
//
// Errors: LeaseLost; InvalidArgument, if the election's policy needs no approval.
type RequestApproval struct {
	LeaseRequest
	Note string // for people: one line of 1 to MaxReasonBytes bytes
	// NewEpoch asks for an approval with a new epoch, as for a new task. The event says so.
	NewEpoch bool
}

func (RequestApproval) Name() string { return "requestApproval" }

func (c RequestApproval) Target() Target { return c.acting() }

func (c RequestApproval) Validate() error {
	return cmp.Or(c.LeaseRequest.Validate(), validateWordAs("note", "-", c.Note))
}
