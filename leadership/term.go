package leadership

import (
	"errors"
	"fmt"
	"time"

	"regent/leadership/internal/form"
)

// Limits of what a TermPolicy and a standing order may ask for.
const (
	MinOrder     = time.Second         // the shortest time that an operator may name
	MaxOrder     = 30 * 24 * time.Hour // the longest
	MaxCooldown  = 24 * time.Hour
	MaxApprovals = 8  // that one extension may need
	MaxVerdicts  = 16 // that may be needed to end a term

	// ProbationLease is the longest lease of a candidate on probation.
	ProbationLease = 10 * time.Second
)

// TermPolicy limits the term of a leader, and says what a leader must achieve to stay one. It is
// judged by the store's clock, in the rules that grant and renew. The zero TermPolicy is no limit.
type TermPolicy struct {
	MaxTerm    time.Duration // the longest term: 1 s to 30 days; 0: no limit
	Approval   ApprovalPolicy
	StuckAfter time.Duration // a term ends this long after the last progress: 2 leases to 30 days; 0: never
	Budget     Counters      // a counter above its limit trips; 0: no limit
	ErrorRate  ErrorRate
	OnTrip     OnTrip        // "" for TripStepDown
	Cooldown   time.Duration // how long a tripped candidate is not granted: 1 s to 24 h; 0: not at all
	CooldownOf CooldownOf    // "" for CooldownCandidate
	Verdicts   int           // so many bad verdicts trip: 1 to 16; 0: none do
	Series     SeriesPolicy  // what many terms may cost together
}

// ApprovalPolicy lets a term end unless operators approve of it now and then.
type ApprovalPolicy struct {
	Every time.Duration // led since the last approval, in one term or several: 1 s to 30 days; 0: no approval is needed
	Need  int           // how many different principals have to approve: 1 to 8; 0 is 1
}

// ErrorRate trips if more than Max of the calls have failed, once there are Min calls.
type ErrorRate struct {
	Max float64 `json:"max"` // above 0, up to 1; 0: no limit
	Min int64   `json:"min"` // at least 1
}

// OnTrip says what a trip does.
type OnTrip string

const (
	TripStepDown OnTrip = "stepDown" // the term ends, and the candidate is banned for the cooldown
	TripNotify   OnTrip = "notify"   // there is an event, once in a term
)

// CooldownOf says what a cooldown bars.
type CooldownOf string

// The kinds of CooldownOf. Of a leader whose caller was not verified a cooldown bars the candidate.
const (
	CooldownCandidate CooldownOf = "candidate" // the candidate that has tripped, and no replica of it
	CooldownPrincipal CooldownOf = "principal" // all candidates that call as its principal, too
)

func (p TermPolicy) validate(lease time.Duration) (field string, err error) {
	if field, err := validateBounds(
		bounded{"policy.maxTerm", p.MaxTerm, OrderBounds},
		bounded{"policy.approval.every", p.Approval.Every, OrderBounds},
		bounded{"policy.stuckAfter", p.StuckAfter, OrderBounds},
		bounded{"policy.cooldown", p.Cooldown, CooldownBounds},
	); err != nil {
		return field, err
	}
	switch {
	case p.Approval.Need < 0 || p.Approval.Need > MaxApprovals:
		return "policy.approval.need", fmt.Errorf("policy.approval.need is from 1 to %d, not %d", MaxApprovals, p.Approval.Need)
	case p.Approval.Need > 0 && p.Approval.Every == 0:
		return "policy.approval.every", errors.New("policy.approval.every is missing: say how often the leader needs an approval")
	case p.StuckAfter > 0 && p.StuckAfter < 2*lease:
		return "policy.stuckAfter", fmt.Errorf("policy.stuckAfter is at least two leases (%s), not %s: reports come with renewals", form.Spoken(2*lease), form.Spoken(p.StuckAfter))
	case p.OnTrip != "" && p.OnTrip != TripStepDown && p.OnTrip != TripNotify:
		return "policy.onTrip", fmt.Errorf("policy.onTrip is %q or %q, not %s", TripStepDown, TripNotify, form.Shown(string(p.OnTrip)))
	case p.CooldownOf != "" && p.CooldownOf != CooldownCandidate && p.CooldownOf != CooldownPrincipal:
		return "policy.cooldownOf", fmt.Errorf("policy.cooldownOf is %q or %q, not %s", CooldownCandidate, CooldownPrincipal, form.Shown(string(p.CooldownOf)))
	case p.CooldownOf == CooldownPrincipal && p.Cooldown == 0:
		return "policy.cooldown", errors.New("policy.cooldown is missing: policy.cooldownOf says what it bars, so say for how long")
	case p.Verdicts < 0 || p.Verdicts > MaxVerdicts:
		return "policy.verdicts", fmt.Errorf("policy.verdicts is from 0 to %d, not %d", MaxVerdicts, p.Verdicts)
	}
	if err := p.Budget.Validate(); err != nil {
		return "policy.budget", fmt.Errorf("policy.budget: %w", err)
	}
	if err := p.ErrorRate.Validate(); err != nil {
		return "policy.errorRate", err
	}
	return p.Series.validate()
}

// Validate returns an error unless each part is within its bounds.
func (r ErrorRate) Validate() error {
	switch {
	case r == ErrorRate{}:
		return nil
	case !(r.Max > 0 && r.Max <= 1):
		return fmt.Errorf("policy.errorRate.max is above 0 and at most 1, not %v", r.Max)
	case r.Min < 1 || r.Min > maxCounter:
		return fmt.Errorf("policy.errorRate.min is from 1 to %d calls, not %d", maxCounter, r.Min)
	}
	return nil
}

// explicit is p in the one form that is stored.
func (p TermPolicy) explicit() TermPolicy {
	if p.Approval.Every > 0 {
		p.Approval.Need = max(p.Approval.Need, 1)
	}
	if p.OnTrip == TripStepDown {
		p.OnTrip = ""
	}
	if p.CooldownOf == CooldownCandidate {
		p.CooldownOf = ""
	}
	return p
}
