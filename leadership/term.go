package leadership

import (
	"errors"
	"fmt"
	"time"

	"regent/leadership/internal/form"
)

// Limits of a TermPolicy and of a standing order.
const (
	MinOrder     = time.Second         // the shortest duration of an order
	MaxOrder     = 30 * 24 * time.Hour // the longest duration of an order
	MaxCooldown  = 24 * time.Hour
	MaxApprovals = 8  // most that ApprovalPolicy.Need may be
	MaxVerdicts  = 16 // most that TermPolicy.Verdicts may be

	// ProbationLease is the longest lease of a candidate on probation.
	ProbationLease = 10 * time.Second
)

// TermPolicy limits the term of a leader by time and by the leader's reports. The rules that grant
// and renew enforce it by the store's clock. The zero TermPolicy is no limit.
type TermPolicy struct {
	MaxTerm    time.Duration // the longest term: 1 s to 30 days; 0: no limit
	Approval   ApprovalPolicy
	StuckAfter time.Duration // a term ends this long after the last progress: 2 leases to 30 days; 0: never
	Budget     Counters      // a counter above its limit trips; 0: no limit
	ErrorRate  ErrorRate
	OnTrip     OnTrip        // "" for TripStepDown
	Cooldown   time.Duration // how long a tripped candidate is not granted: 1 s to 24 h; 0: not at all
	CooldownOf CooldownOf    // "" for CooldownCandidate
	Verdicts   int           // how many bad verdicts trip: 1 to 16; 0: no number does
	Series     SeriesPolicy  // limits many terms together
}

// ApprovalPolicy ends a term unless operators approve of it regularly.
type ApprovalPolicy struct {
	Every time.Duration // time led since the last approval, over all terms: 1 s to 30 days; 0: no approval is needed
	Need  int           // how many different principals must approve: 1 to 8; 0 is 1
}

// ErrorRate trips if more than Max of the calls have failed, once there are Min calls.
type ErrorRate struct {
	Max float64 `json:"max"` // above 0, up to 1; 0: no limit
	Min int64   `json:"min"` // at least 1
}

// OnTrip is the consequence of a trip.
type OnTrip string

const (
	TripStepDown OnTrip = "stepDown" // the term ends, and the candidate is banned for the cooldown
	TripNotify   OnTrip = "notify"   // an event is written, once in a term
)

// CooldownOf says which candidates a cooldown bars.
type CooldownOf string

// The values of CooldownOf. If the leader's caller was not verified, both bar only the candidate.
const (
	CooldownCandidate CooldownOf = "candidate" // only the candidate that tripped, not its replicas with other ids
	CooldownPrincipal CooldownOf = "principal" // the candidate, and every candidate that calls as its principal
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

// explicit returns p in the form in which it is stored.
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
