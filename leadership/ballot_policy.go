package leadership

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"regent/leadership/internal/form"
)

// Limits and defaults of a BallotPolicy.
const (
	DefaultWindow = 300 * time.Millisecond
	MaxWindow     = 30 * time.Second
	// NoWindow, as a window, means no ballot: each instance asks for its best candidate at once.
	NoWindow = -time.Millisecond

	MaxElectorate = 31 // names
	DefaultGrace  = 10 * time.Second
	MaxGrace      = 10 * time.Minute
)

// BallotPolicy says which candidate should lead and how many members must be present. The zero
// BallotPolicy grants the first candidate that asks.
type BallotPolicy struct {
	Strategy Strategy
	Require  Names // a candidate without all of these capabilities is refused
	Prefer   Names // with StrategyCapability: a candidate with more of these is better
	// Window is how long bids are collected once the election is vacant: up to MaxWindow. 0 is the
	// default: DefaultWindow, and with StrategyFirstCome and no quorum NoWindow.
	Window time.Duration
	// Preempt lets a better candidate end the term of a leader that has led for MinTerm, at the end
	// that the leader was promised. With StrategyPriority, StrategyCapability and
	// StrategyLeastLoaded only; the leader counts with what it said when it was granted.
	Preempt bool
	MinTerm time.Duration // up to 30 days; 0: none
	Quorum  QuorumPolicy
}

// QuorumPolicy allows grants only while enough members of the electorate are present, and makes the
// election read-only when too few have been present for the grace time. It plays no part in keeping
// two leaders apart: the store does that.
//
// A ballot keeps 16 bids, and with them the members that their instances have heard of. Members of
// a larger quorum should wait, join, or call one of a few instances: if many only ask without
// waiting, some may not be counted.
type QuorumPolicy struct {
	Electorate Names         // candidate ids, at most MaxElectorate; "": no quorum is asked for
	Need       int           // 1 to the size of the electorate; 0: the majority
	Grace      time.Duration // up to MaxGrace; 0: DefaultGrace
}

// Strategy says which of two candidates is the better one; see Rank.
type Strategy string

const (
	StrategyFirstCome   Strategy = "firstCome" // the default, as is ""
	StrategyPriority    Strategy = "priority"
	StrategyCapability  Strategy = "capability"
	StrategyLeastLoaded Strategy = "leastLoaded"
	StrategyRandom      Strategy = "random"
	StrategyRoundRobin  Strategy = "roundRobin"
)

func Strategies() []Strategy {
	return []Strategy{StrategyFirstCome, StrategyPriority, StrategyCapability, StrategyLeastLoaded, StrategyRandom, StrategyRoundRobin}
}

// EffectiveWindow returns how long bids are collected; 0 if there is no ballot.
func (p BallotPolicy) EffectiveWindow() time.Duration {
	switch {
	case p.Window > 0:
		return p.Window
	case p.Window == 0 && (p.Strategy != "" && p.Strategy != StrategyFirstCome || p.Quorum.Electorate != ""):
		return DefaultWindow
	}
	return 0
}

// HasBallot reports whether candidates bid before one is granted.
func (p BallotPolicy) HasBallot() bool { return p.EffectiveWindow() > 0 }

// Explicit returns p in the form in which it is stored.
func (p BallotPolicy) Explicit() BallotPolicy {
	if p.Strategy == StrategyFirstCome {
		p.Strategy = ""
	}
	if w := p.EffectiveWindow(); w > 0 {
		p.Window = w
	} else if p.Strategy == "" {
		p.Window = 0
	}
	if p.Quorum.Electorate != "" && p.Quorum.Grace == 0 {
		p.Quorum.Grace = DefaultGrace
	}
	return p
}

func (p BallotPolicy) validate() (field string, err error) {
	ranked := p.Strategy == StrategyPriority || p.Strategy == StrategyCapability || p.Strategy == StrategyLeastLoaded
	switch {
	case p.Strategy != "" && !slices.Contains(Strategies(), p.Strategy):
		return "policy.strategy", fmt.Errorf("policy.strategy is %s, %s, %s, %s, %s or %s, not %s", StrategyFirstCome, StrategyPriority,
			StrategyCapability, StrategyLeastLoaded, StrategyRandom, StrategyRoundRobin, form.Shown(string(p.Strategy)))
	case p.Prefer != "" && p.Strategy != StrategyCapability:
		return "policy.prefer", fmt.Errorf("policy.prefer counts with the strategy %q only; choose it, or leave prefer out", StrategyCapability)
	case p.Preempt && !ranked:
		return "policy.preempt", fmt.Errorf("policy.preempt goes with the strategies %q, %q and %q: with any other no candidate stays better than the leader",
			StrategyPriority, StrategyCapability, StrategyLeastLoaded)
	case p.MinTerm != 0 && !p.Preempt:
		return "policy.minTerm", errors.New("policy.minTerm is how long a leader is safe from policy.preempt; set preempt, or leave minTerm out")
	case p.Quorum.Electorate != "" && p.Window == NoWindow:
		return "policy.window", errors.New("policy.window is more than 0s with a quorum: the members that are present are counted in the ballot")
	}
	if err := p.Require.validateCapabilities("policy.require"); err != nil {
		return "policy.require", err
	}
	if err := p.Prefer.validateCapabilities("policy.prefer"); err != nil {
		return "policy.prefer", err
	}
	if err := WindowBounds.Check("policy.window", p.Window); err != nil && p.Window != NoWindow {
		return "policy.window", err
	}
	if field, err := validateBounds(bounded{"policy.minTerm", p.MinTerm, OrderBounds}); err != nil {
		return field, err
	}
	return p.Quorum.validate()
}

func (q QuorumPolicy) validate() (field string, err error) {
	if err := q.Electorate.Validate(); err != nil {
		return "policy.quorum.electorate", fmt.Errorf("policy.quorum.electorate: %w", err)
	}
	all := q.Electorate.List()
	for _, name := range all {
		if err := CandidateID(name).Validate(); err != nil {
			return "policy.quorum.electorate", fmt.Errorf("policy.quorum.electorate: %w", err)
		}
	}
	switch {
	case len(all) == 0 && q != QuorumPolicy{}:
		return "policy.quorum.electorate", fmt.Errorf("policy.quorum.electorate names 1 to %d members", MaxElectorate)
	case len(all) > MaxElectorate:
		return "policy.quorum.electorate", fmt.Errorf("policy.quorum.electorate has at most %d members, not %d", MaxElectorate, len(all))
	case q.Need < 0 || q.Need > len(all):
		return "policy.quorum.need", fmt.Errorf("policy.quorum.need is \"majority\", or from 1 to the %d members of the electorate, not %d", len(all), q.Need)
	}
	return validateBounds(bounded{"policy.quorum.grace", q.Grace, GraceBounds})
}

// Size returns the number of members of the electorate; 0 if there is no quorum policy.
func (q QuorumPolicy) Size() int { return len(q.Electorate.List()) }

// Needed returns how many members must be present; 0 if there is no quorum policy.
func (q QuorumPolicy) Needed() int {
	if q.Need == 0 && q.Electorate != "" {
		return q.Size()/2 + 1
	}
	return q.Need
}

// ToleratedFailures returns how many members may be absent.
func (q QuorumPolicy) ToleratedFailures() int { return q.Size() - q.Needed() }

// Bid is a candidate's offer in a ballot.
type Bid struct {
	CandidateID CandidateID `json:"candidateId"`
	Witness     bool        `json:"witness,omitempty"`
	Priority    int64       `json:"priority,omitempty"`
	Load        int64       `json:"load,omitempty"`
	Preferred   int         `json:"preferred,omitempty"` // how many capabilities it has that the policy prefers
	Since       time.Time   `json:"since,omitzero"`      // when it began to wait, by the store's clock
	At          time.Time   `json:"at,omitzero"`         // when it was written
	// Present are the members of the electorate that the bidding instance has heard of lately: bit
	// i is the i-th name.
	Present uint32 `json:"present,omitempty"`
	// Instance is InLine.Instance of the call that wrote the bid: only that instance withdraws it.
	Instance uint32 `json:"instance,omitempty"`
}

// Validate returns an error unless each part is within its bounds.
func (b Bid) Validate() error {
	if err := b.CandidateID.Validate(); err != nil {
		return err
	}
	if b.Priority < MinPriority || b.Priority > MaxPriority || b.Load < 0 || b.Load > MaxLoad || b.Preferred < 0 || b.Preferred > MaxCapabilities || b.Present >= 1<<MaxElectorate {
		return errors.New("a bid has a number that is out of range")
	}
	return form.Instants(b.Since, b.At)
}
