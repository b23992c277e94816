package rule

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// termMembers are the members of a policy that limit terms, bound to the fields of p.
func termMembers(p *leadership.TermPolicy) []member {
	return []member{
		{name: "maxTermMs", field: (*longMilliseconds)(&p.MaxTerm)},
		{name: "approvalEveryMs", field: (*longMilliseconds)(&p.Approval.Every)},
		{name: "approvalNeed", field: value(&p.Approval.Need)},
		{name: "stuckAfterMs", field: (*longMilliseconds)(&p.StuckAfter)},
		{name: "budget", field: value(&p.Budget)},
		{name: "errorRate", field: value(&p.ErrorRate)},
		{name: "onTrip", field: (*text)(&p.OnTrip)},
		{name: "cooldownMs", field: (*milliseconds)(&p.Cooldown)},
		{name: "cooldownOf", field: (*text)(&p.CooldownOf)},
		{name: "verdicts", field: value(&p.Verdicts)},
		{name: "seriesFailures", field: value(&p.Series.Failures)},
		{name: "seriesWithinMs", field: (*longMilliseconds)(&p.Series.Within)},
		{name: "seriesBudget", field: value(&p.Series.Budget)},
		{name: "seriesBudgetWithinMs", field: (*longMilliseconds)(&p.Series.BudgetWithin)},
	}
}

// valueField is a field whose value encodes itself as JSON, and perhaps has a method Validate.
type valueField[T comparable] struct{ value *T }

func value[T comparable](v *T) field { return valueField[T]{v} }

func (f valueField[T]) encode() json.RawMessage {
	if zero := *new(T); *f.value == zero {
		return nil
	}
	text, _ := form.JSON(*f.value) // the types used have no value without a JSON form
	return text
}

func (f valueField[T]) decode(text json.RawMessage) error {
	if err := form.Decode(text, f.value); err != nil {
		return err
	}
	switch v := any(*f.value).(type) {
	case interface{ Validate() error }:
		return v.Validate()
	case time.Time:
		return form.Instants(v)
	}
	return nil
}

// ends are the limits of the present term, one for each cause; zero: no limit. The earliest is
// Record.EndsBy.
type ends struct {
	Term     time.Time `json:"term,omitzero"`
	Approval time.Time `json:"approval,omitzero"`
	Stuck    time.Time `json:"stuck,omitzero"`
	// Ordered is set by an operator's order; Because says by which kind.
	Ordered time.Time            `json:"ordered,omitzero"`
	Because leadership.EndReason `json:"because,omitempty"`
	// Challenged is set by a better candidate.
	Challenged time.Time `json:"challenged,omitzero"`
	// Whole is set by the election that this one is a seat of.
	Whole wholeEnd `json:"whole,omitzero"`
}

// wholeEnd is an end, and why.
type wholeEnd struct {
	At      time.Time            `json:"at,omitzero"`
	Because leadership.EndReason `json:"because,omitempty"`
}

func (e ends) Validate() error {
	if e.Ordered.IsZero() != (e.Because == "") || len(e.Because) > maxEndReasonBytes ||
		e.Whole.At.IsZero() != (e.Whole.Because == "") || len(e.Whole.Because) > maxEndReasonBytes {
		return errors.New("an end by an order has no reason, or a reason has no end")
	}
	return form.Instants(e.Term, e.Approval, e.Stuck, e.Ordered, e.Challenged, e.Whole.At)
}

// limited reports whether the present term has a limit.
func (s Standing) limited() bool {
	at, _ := s.end()
	return !at.IsZero()
}

// end returns the earliest limit of the present term and its reason; zero if there is none. Once
// the leader has yielded, only the end that this sets counts.
func (s Standing) end() (at time.Time, because leadership.EndReason) {
	if at := s.Succession.Yielded; !at.IsZero() {
		return at, leadership.EndsHandOver
	}
	e := s.Ends
	for _, end := range []struct {
		at      time.Time
		because leadership.EndReason
	}{
		{e.Ordered, e.Because},
		{e.Whole.At, e.Whole.Because},
		{e.Stuck, leadership.EndsStuck},
		{e.Approval, leadership.EndsApproval},
		{e.Term, leadership.EndsMaxTerm},
		{s.Parent.Until, leadership.EndsParent},
		{e.Challenged, leadership.EndsHandOver},
		{s.Succession.Ends, leadership.EndsHandOver},
	} {
		if !end.at.IsZero() && (at.IsZero() || end.at.Before(at)) {
			at, because = end.at, end.because
		}
	}
	return at, because
}

// TermMoved returns s with the limits of the present term moved on by that much, for a store whose
// clock has jumped while its leases stood still. The lease of a peer did not stand still, so its
// end stays.
func (s Standing) TermMoved(by time.Duration) Standing {
	e := &s.Ends
	all := []*time.Time{
		&e.Term, &e.Approval, &e.Stuck, &e.Ordered, &e.Challenged, &e.Whole.At, &s.Probation.Until,
		&s.Succession.Since, &s.Succession.Ends, &s.Succession.Yielded,
	}
	if s.Parent.Peer == "" {
		all = append(all, &s.Parent.Until)
	}
	for _, end := range all {
		if !end.IsZero() {
			*end = form.Later(*end, by)
		}
	}
	return s
}

// begin sets the ends of a term that is granted now.
func (c *Change) begin(now time.Time) {
	p := c.Record.Policy.Term
	var e ends
	if p.MaxTerm > 0 {
		e.Term = form.Later(now, p.MaxTerm)
	}
	if every := p.Approval.Every; every > 0 {
		e.Approval = form.Later(now, min(every, cmp.Or(c.Record.Standing.ApprovalLeft, every)))
	}
	c.Record.Standing.ApprovalLeft = 0
	if p.StuckAfter > 0 {
		e.Stuck = form.Later(now, p.StuckAfter)
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
		r.EndsBy = form.Later(promised, 0)
	}
}

// relax lifts the limits of the present term that the policy no longer sets. New limits count from
// the next grant, approval or progress. before is the previous ballot policy: if it differs, a
// challenge is taken back, and a leader whose preferred capabilities are no longer known is safe
// for the rest of its term.
func (c *Change) relax(before leadership.BallotPolicy) {
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
	if p.Series == (leadership.SeriesPolicy{}) {
		if r.parked() {
			r.Standing.Approval = approval{}
		}
		r.Standing.Series = series{}
	}
	ballot := r.Policy.Ballot
	if ballot != before {
		e.Challenged, r.Standing.Challenger, r.Standing.ChallengerAt = time.Time{}, "", 0
	}
	if !ballot.Preempt || ballot.Prefer != before.Prefer {
		r.Standing.Elected = leadership.Bid{}
	}
	if !r.Policy.Promotion {
		r.Standing.NotServing = false
	}
	if ballot.Strategy == leadership.StrategyRoundRobin && r.LeaderID != "" {
		r.Standing.LastLeader = r.LeaderID
	}
	if e != r.Standing.Ends {
		r.Standing.Ends = e
		c.limit(r.LeaseEnd())
	}
}

// endsOrdered ends the term at the promised end, by an operator's order. An eviction stays the
// reason, because nothing lifts it.
func (c *Change) endsOrdered(because leadership.EndReason) {
	promised, e := c.Record.LeaseEnd(), &c.Record.Standing.Ends
	if e.Because != leadership.EndsEvicted {
		e.Because = because
	}
	if e.Ordered.IsZero() {
		e.Ordered = form.Later(promised, 0)
	}
	c.limit(promised)
}

// endsNoLonger lifts the end that an operator's order has set for that reason, unless another
// standing order also ends the term.
func (c *Change) endsNoLonger(because leadership.EndReason, now time.Time) {
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

// orderedEnd returns why a standing order ends the present term; "" if none does.
func (r *Record) orderedEnd(now time.Time) leadership.EndReason {
	for _, o := range r.Standing.overrides(now) {
		switch {
		case o.Kind == leadership.OverrideAssign && o.CandidateID != r.LeaderID:
			return leadership.EndsHandOver
		case o.Mode == leadership.PauseDrain:
			return leadership.EndsDrained
		}
	}
	return ""
}
