package leadership

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"
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
	Verdicts   int           // so many bad verdicts trip: 1 to 16; 0: none do
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

// The kinds of OnTrip.
const (
	TripStepDown OnTrip = "stepDown" // the term ends, and the candidate is banned for the cooldown
	TripNotify   OnTrip = "notify"   // there is an event, once in a term
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
		return "policy.stuckAfter", fmt.Errorf("policy.stuckAfter is at least two leases (%s), not %s: reports come with renewals", spoken(2*lease), spoken(p.StuckAfter))
	case p.OnTrip != "" && p.OnTrip != TripStepDown && p.OnTrip != TripNotify:
		return "policy.onTrip", fmt.Errorf("policy.onTrip is %q or %q, not %s", TripStepDown, TripNotify, shown(string(p.OnTrip)))
	case p.Verdicts < 0 || p.Verdicts > MaxVerdicts:
		return "policy.verdicts", fmt.Errorf("policy.verdicts is from 0 to %d, not %d", MaxVerdicts, p.Verdicts)
	}
	if err := p.Budget.validate(); err != nil {
		return "policy.budget", fmt.Errorf("policy.budget: %w", err)
	}
	if err := p.ErrorRate.validate(); err != nil {
		return "policy.errorRate", err
	}
	return "", nil
}

func (r ErrorRate) validate() error {
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
	return p
}

// termMembers are the members of a policy that limit terms, bound to the fields of p.
func termMembers(p *TermPolicy) []member {
	return []member{
		{name: "maxTermMs", field: (*longMilliseconds)(&p.MaxTerm)},
		{name: "approvalEveryMs", field: (*longMilliseconds)(&p.Approval.Every)},
		{name: "approvalNeed", field: value(&p.Approval.Need)},
		{name: "stuckAfterMs", field: (*longMilliseconds)(&p.StuckAfter)},
		{name: "budget", field: value(&p.Budget)},
		{name: "errorRate", field: value(&p.ErrorRate)},
		{name: "onTrip", field: (*text)(&p.OnTrip)},
		{name: "cooldownMs", field: (*milliseconds)(&p.Cooldown)},
		{name: "verdicts", field: value(&p.Verdicts)},
	}
}

// valueField is a value that has a JSON form of its own, and perhaps a method validate.
type valueField[T comparable] struct{ value *T }

func value[T comparable](v *T) field { return valueField[T]{v} }

func (f valueField[T]) encode() json.RawMessage {
	if zero := *new(T); *f.value == zero {
		return nil
	}
	text, _ := encodeJSON(*f.value) // the types used have no value without a JSON form
	return text
}

func (f valueField[T]) decode(text json.RawMessage) error {
	if err := decodeStrictly(text, f.value); err != nil {
		return err
	}
	switch v := any(*f.value).(type) {
	case interface{ validate() error }:
		return v.validate()
	case time.Time:
		return validateInstants(v)
	case CandidateID:
		return v.Validate()
	}
	return nil
}

// validateInstants accepts instants as later makes them, so that equal ones are equal with ==.
func validateInstants(all ...time.Time) error {
	for _, t := range all {
		if t.Location() != time.UTC || !later(t, 0).Equal(t) {
			return fmt.Errorf("%s is no instant of UTC in whole microseconds", t.Format(time.RFC3339Nano))
		}
	}
	return nil
}

// ends are the latest ends of the present term, by what sets each; zero: none. The earliest is
// Record.EndsBy.
type ends struct {
	Term     time.Time `json:"term,omitzero"`
	Approval time.Time `json:"approval,omitzero"`
	Stuck    time.Time `json:"stuck,omitzero"`
	// Ordered is set by an operator's order, Because says which.
	Ordered time.Time `json:"ordered,omitzero"`
	Because EndReason `json:"because,omitempty"`
	// Challenged is set by a better candidate.
	Challenged time.Time `json:"challenged,omitzero"`
}

func (e ends) validate() error {
	if e.Ordered.IsZero() != (e.Because == "") || len(e.Because) > maxEndReasonBytes {
		return errors.New("an end by an order has no reason, or a reason has no end")
	}
	return validateInstants(e.Term, e.Approval, e.Stuck, e.Ordered, e.Challenged)
}

// limited reports whether anything sets a latest end of the present term.
func (s Standing) limited() bool {
	at, _ := s.end()
	return !at.IsZero()
}

// end is the earliest of what ends the present term; zero if there is none. Once the leader has
// yielded nothing else counts: it has stopped.
func (s Standing) end() (at time.Time, because EndReason) {
	if at := s.Succession.Yielded; !at.IsZero() {
		return at, EndsHandOver
	}
	e := s.Ends
	for _, end := range []struct {
		at      time.Time
		because EndReason
	}{
		{e.Ordered, e.Because},
		{e.Stuck, EndsStuck},
		{e.Approval, EndsApproval},
		{e.Term, EndsMaxTerm},
		{s.Parent.Until, EndsParent},
		{e.Challenged, EndsHandOver},
		{s.Succession.Ends, EndsHandOver},
	} {
		if !end.at.IsZero() && (at.IsZero() || end.at.Before(at)) {
			at, because = end.at, end.because
		}
	}
	return at, because
}

// TermMoved is s with what limits the present term that much later, for a store whose clock has
// jumped while the lease stood still. The lease of a peer has not stood still: its end stays.
func (s Standing) TermMoved(by time.Duration) Standing {
	e := &s.Ends
	all := []*time.Time{
		&e.Term, &e.Approval, &e.Stuck, &e.Ordered, &e.Challenged, &s.Probation.Until,
		&s.Succession.Since, &s.Succession.Ends, &s.Succession.Yielded,
	}
	if s.Parent.Peer == "" {
		all = append(all, &s.Parent.Until)
	}
	for _, end := range all {
		if !end.IsZero() {
			*end = later(*end, by)
		}
	}
	return s
}

// instantPrecision is the precision of the instants that rules compute: that of the cloud stores.
const instantPrecision = time.Microsecond

// later is the instant d after t, rounded up to what every store keeps.
func later(t time.Time, d time.Duration) time.Time {
	end := t.Add(d).UTC().Round(0)
	if short := end.Truncate(instantPrecision); !short.Equal(end) {
		return short.Add(instantPrecision)
	}
	return end
}

// begin sets the ends of a term that is granted now.
func (c *Change) begin(now time.Time) {
	p := c.Record.Policy.Term
	var e ends
	if p.MaxTerm > 0 {
		e.Term = later(now, p.MaxTerm)
	}
	if every := p.Approval.Every; every > 0 {
		e.Approval = later(now, min(every, cmp.Or(c.Record.Standing.ApprovalLeft, every)))
	}
	c.Record.Standing.ApprovalLeft = 0
	if p.StuckAfter > 0 {
		e.Stuck = later(now, p.StuckAfter)
	}
	c.Record.Standing.Ends = e
	c.Record.EndsBy, c.Record.EndsBecause = c.Record.Standing.end()
}

// limit makes EndsBy the earliest of the ends, but never earlier than what the leader was promised:
// the end of the lease as it was before the change.
func (c *Change) limit(promised time.Time) {
	r := &c.Record
	if r.EndsBy, r.EndsBecause = r.Standing.end(); r.EndsBy.IsZero() {
		return
	}
	if r.EndsBy.Before(promised) {
		r.EndsBy = later(promised, 0)
	}
}

// relax lifts the ends of the present term that the policy no longer sets. What it sets anew counts
// from the next grant, approval or progress on. before said until now who should lead: a challenge
// under other rules is taken back, and a leader whose preferred capabilities are not known any more
// is safe for the rest of its term.
func (c *Change) relax(before BallotPolicy) {
	r := &c.Record
	p, e := r.Policy.Term, r.Standing.Ends
	if p.MaxTerm == 0 {
		e.Term = time.Time{}
	}
	if p.Approval.Every == 0 {
		e.Approval = time.Time{}
	}
	if p.StuckAfter == 0 {
		e.Stuck = time.Time{}
	}
	ballot := r.Policy.Ballot
	if ballot != before {
		e.Challenged, r.Standing.Challenger, r.Standing.ChallengerAt = time.Time{}, "", 0
	}
	if !ballot.Preempt || ballot.Prefer != before.Prefer {
		r.Standing.Elected = Bid{}
	}
	if !r.Policy.Promotion {
		r.Standing.Unready = false
	}
	if ballot.Strategy == StrategyRoundRobin && r.LeaderID != "" {
		r.Standing.LastLeader = r.LeaderID
	}
	if e != r.Standing.Ends {
		r.Standing.Ends = e
		c.limit(r.LeaseEnd())
	}
}

// endsOrdered lets the lease end at the end that was promised, by an operator's order. An eviction
// stays one, because nothing lifts it.
func (c *Change) endsOrdered(because EndReason) {
	promised, e := c.Record.LeaseEnd(), &c.Record.Standing.Ends
	if e.Because != EndsEvicted {
		e.Because = because
	}
	if e.Ordered.IsZero() {
		e.Ordered = later(promised, 0)
	}
	c.limit(promised)
}

// endsNoLonger lifts the end that an operator's order has set for that reason, unless another order
// that stands asks for it too.
func (c *Change) endsNoLonger(because EndReason, now time.Time) {
	r := &c.Record
	e := &r.Standing.Ends
	if r.LeaderID == "" || e.Because != because {
		return
	}
	if e.Because = r.orderedEnd(now); e.Because == "" {
		e.Ordered = time.Time{}
	}
	c.limit(r.LeaseEnd())
}

// orderedEnd is why standing orders end the present term; "" if none does.
func (r Record) orderedEnd(now time.Time) EndReason {
	for _, o := range r.Standing.overrides(now) {
		switch {
		case o.Kind == OverrideAssign && o.CandidateID != r.LeaderID:
			return EndsHandOver
		case o.Mode == PauseDrain:
			return EndsDrained
		}
	}
	return ""
}
