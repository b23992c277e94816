package rule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// Policy is the configuration of an election in its record. A new member needs a field of Config, a
// check in its validate, and a row in policyMembers.
type Policy struct {
	leadership.Config
	// Unknown has the members that a newer program has set, as one canonical JSON object; "" if
	// there are none. They are written back unchanged, even when an operator sets a new Config.
	Unknown string
}

// Configured returns Lease.Configured. An election that a candidate has made has no configuration,
// or it has a parent.
func (p Policy) Configured() bool { return p.LeaseDuration > 0 && p.Delegation.Parent == "" }

// Standing is the state of an election beside its lease. A new member needs a field, a row in
// standingMembers, and a line in each function that sets or clears it.
type Standing struct {
	Note      string // of the leader's acquire, while the lease lasts
	Principal string // the last name of the verified principal as which the leader acquired; "" if it was not verified

	Overrides leadership.Overrides // standing orders, perhaps some that are over
	Breakers  breakers             // candidates that have tripped
	Approval  approval
	Series    series // over many terms
	// ApprovalLeft, while vacant, is the time that the last term had left before it needed another
	// approval. The next term has that time; 0: it has the policy's full time.
	ApprovalLeft time.Duration

	// Of the present term.
	Ends       ends
	Report     leadership.ReportText // the last one
	ReportedAt time.Time
	Verdicts   verdicts
	Probation  probation
	Succession succession
	Named      handOvers
	Parent     leadership.Parent      // the lease that this one stands on
	NotServing bool                   // with Config.Promotion: the leader has not said that it serves
	Notified   bool                   // the leader has tripped, and the policy only notifies
	EpochFrom  leadership.Token       // the token of the leader's grant, if operators have begun new epochs since
	Elected    leadership.Bid         // the leader's bid at its grant, if the policy lets better candidates preempt it
	Challenger leadership.CandidateID // the better candidate for which the term ends
	// ChallengerAt is InLine.Instance of the challenger's call.
	ChallengerAt uint32

	// While vacant: the bids, and when the first of them was written. Opened includes the Delay by
	// which it was put off because bidders have gone.
	Opened time.Time
	Delay  time.Duration
	Bids   bids

	Secret     secret                 // of the next draw
	LastLeader leadership.CandidateID // with StrategyRoundRobin
	Drawn      time.Time              // of an election with seats: the grant after which these two were noted

	Deposed   deposed // the last term, until the next grant
	Ended     ended   // why the last term has ended; kept during the next one
	Delegated delegated

	// Seat is the newest revision that a seat was told of the election that it is a seat of; 0 if
	// this is no seat. Untold is the highest seat of this election that may not have been told of
	// its last change; 0 if all have.
	Seat   leadership.Revision
	Untold int

	// Created is when the election was created, in seconds since 1970, for people. 0: at
	// AcquiredAt, if that is set.
	Created int64

	Unknown string // as in Policy
}

// policyMembers are the members of a policy, bound to the fields of p.
func policyMembers(p *Policy) []member {
	return slices.Concat([]member{
		{name: "leaseDurationMs", field: (*milliseconds)(&p.LeaseDuration)},
		{name: "lockDelayMs", field: (*milliseconds)(&p.LockDelay)},
		{name: "retireAfterMs", field: (*longMilliseconds)(&p.RetireAfter)},
		{name: "description", field: (*text)(&p.Description)},
		{name: "maxLeaseDurationMs", field: (*milliseconds)(&p.MaxLeaseDuration)},
		{name: "promotion", field: value(&p.Promotion)},
		{name: "leadersOf", field: (*text)(&p.LeadersOf)},
		{name: "delegation", field: value(&p.Delegation)},
		{name: "seats", field: value(&p.Seats)},
	}, termMembers(&p.Term), ballotMembers(&p.Ballot))
}

// standingMembers are the members of a standing, bound to the fields of s.
func standingMembers(s *Standing) []member {
	return []member{
		{name: "note", field: (*text)(&s.Note)},
		{name: "principal", field: (*text)(&s.Principal)},
		{name: "overrides", field: listField[leadership.Override]{(*string)(&s.Overrides), leadership.MaxOverrides, leadership.Override.Validate}},
		{name: "breakers", field: listField[breaker]{(*string)(&s.Breakers), maxBreakers, breaker.Validate}},
		{name: "approval", field: value(&s.Approval)},
		{name: "approvalLeftNs", field: value(&s.ApprovalLeft)},
		{name: "failed", field: listField[failure]{&s.Series.Failed, leadership.MaxFailures, failure.Validate}},
		{name: "spent", field: listField[spending]{&s.Series.Spent, maxSpendings + 1, spending.Validate}},
		{name: "parked", field: (*text)(&s.Series.Parked)},
		{name: "ends", field: value(&s.Ends)},
		{name: "report", field: (*reportField)(&s.Report)},
		{name: "reportedAt", field: value(&s.ReportedAt)},
		{name: "verdicts", field: value(&s.Verdicts)},
		{name: "probation", field: value(&s.Probation)},
		{name: "notified", field: value(&s.Notified)},
		{name: "epochFrom", field: value(&s.EpochFrom)},
		{name: "deposed", field: value(&s.Deposed)},
		{name: "elected", field: value(&s.Elected)},
		{name: "challenger", field: value(&s.Challenger)},
		{name: "challengerAt", field: value(&s.ChallengerAt)},
		{name: "ballotOpened", field: value(&s.Opened)},
		{name: "ballotDelayMs", field: (*milliseconds)(&s.Delay)},
		{name: "bids", field: listField[leadership.Bid]{(*string)(&s.Bids), maxBids, leadership.Bid.Validate}},
		{name: "secret", field: value(&s.Secret)},
		{name: "lastLeader", field: value(&s.LastLeader)},
		{name: "drawn", field: value(&s.Drawn)},
		{name: "succession", field: value(&s.Succession)},
		{name: "parent", field: value(&s.Parent)},
		{name: "notServing", field: value(&s.NotServing)},
		{name: "handOvers", field: value(&s.Named)},
		{name: "ended", field: value(&s.Ended)},
		{name: "delegated", field: value(&s.Delegated)},
		{name: "created", field: (*seconds)(&s.Created)},
		{name: "seat", field: value(&s.Seat)},
		{name: "untold", field: value(&s.Untold)},
	}
}

// granted returns s after a grant. It drops orders that are over, and trips of long ago.
func (s Standing) granted(c AcquireCommand, config leadership.Config, now time.Time) Standing {
	p := config.Ballot
	s.Note, s.Principal = c.Note, ""
	if n := len(c.Principal); n > 0 {
		s.Principal = c.Principal[n-1]
	}
	s.Parent, s.NotServing = c.Parent.Parent, config.Promotion
	s.closeBallot()
	if p.Preempt {
		s.Elected = NewBid(c.Candidacy, c.CandidateID, p, time.Time{})
	}
	s.Secret, s.LastLeader = "", ""
	switch p.Strategy {
	case leadership.StrategyRandom:
		s.Secret = secret(c.Secret)
	case leadership.StrategyRoundRobin:
		s.LastLeader = c.CandidateID
	}
	s.Deposed, s.Approval = deposed{}, approval{}
	if s.Overrides != "" {
		s.Overrides = leadership.NewOverrides(s.overrides(now))
	}
	if s.Breakers != "" {
		s.Breakers = s.Breakers.at(now)
	}
	return s
}

// vacated returns s once the lease has ended.
func (s Standing) vacated() Standing {
	s.Note, s.Principal = "", ""
	s.Ends, s.Report, s.ReportedAt, s.Verdicts = ends{}, "", time.Time{}, verdicts{}
	s.Probation, s.Notified, s.EpochFrom = probation{}, false, 0
	s.Elected, s.Challenger, s.ChallengerAt = leadership.Bid{}, "", 0
	s.Succession, s.Named, s.Parent, s.NotServing = succession{}, handOvers{}, leadership.Parent{}, false
	if s.Approval.Asked, s.Approval.AskedEpoch = false, false; !s.Approval.Awaited {
		s.Approval = approval{}
	}
	return s
}

// ofTerm reports whether s has parts that only a leader's term has.
func (s Standing) ofTerm() bool {
	return s.Principal != "" || s.Ends != (ends{}) || s.Report != "" || !s.ReportedAt.IsZero() || s.Verdicts != (verdicts{}) ||
		s.Succession != (succession{}) || s.Parent != (leadership.Parent{}) || s.NotServing || s.Probation != (probation{}) || s.Notified || s.EpochFrom != 0 || s.Elected != (leadership.Bid{}) || s.Challenger != ""
}

// bars returns the ids of all orders and cooldowns that bar candidates, so that two stores can be
// compared whatever their clocks.
func (s Standing) bars() string {
	var b strings.Builder
	for _, o := range s.Overrides.List() {
		b.WriteString(string(o.ID) + " ")
	}
	for _, x := range s.Breakers.list() {
		fmt.Fprintf(&b, "%s %d ", x.CandidateID, x.CooldownMS)
	}
	fmt.Fprint(&b, s.Approval.Awaited)
	return b.String()
}

// moved returns s for a store whose clock is that far ahead.
func (s Standing) moved(ahead time.Duration) Standing {
	orders := s.Overrides.List()
	for i := range orders {
		o := &orders[i]
		span := o.Until.Sub(o.Since)
		o.Since = form.Later(o.Since, ahead)
		o.Until = o.Since.Add(span)
	}
	tripped := s.Breakers.list()
	for i := range tripped {
		tripped[i].Until = form.Later(tripped[i].Until, ahead)
	}
	failed, spent := form.List[failure](s.Series.Failed), form.List[spending](s.Series.Spent)
	for i := range failed {
		failed[i].At = form.Later(failed[i].At, ahead)
	}
	for i := range spent {
		spent[i].Since = form.Later(spent[i].Since, ahead)
	}
	s.Series.Failed, s.Series.Spent = form.WriteList(failed), form.WriteList(spent)
	s.Overrides, s.Breakers = leadership.NewOverrides(orders), breakers(form.WriteList(tripped))
	s.closeBallot()
	return s
}
