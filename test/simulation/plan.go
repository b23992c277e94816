package simulation

import (
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// kind is the kind of a store's transactions.
type kind int

const (
	oneStep kind = iota
	stamped
	optimistic
)

func (k kind) String() string { return [...]string{"one step", "stamped", "optimistic"}[k] }

// plan has the parameters of a run, all drawn from the seed.
type plan struct {
	elections, agents, instances int
	store                        kind
	lease, lockDelay             time.Duration
	term                         time.Duration // for how long a leader leads on average before it resigns; 0 for ever
	wait                         time.Duration // of a candidate in line
	swift                        time.Duration // how long a message is under way, most of the time
	keyless                      float64       // the share of agents that let the service choose their keys
	lengths                      bool          // agents ask for leases of different lengths
	margins                      bool          // agents need time to stop

	policy leadership.TermPolicy
	ballot leadership.BallotPolicy // who should lead

	handing handing

	drift  bool // clocks are not exact
	faults faults
	mean   time.Duration // between two faults of one kind, for one part
}

// faults are the kinds of faults, each with its probability, or whether it happens.
type faults struct {
	lost, late, doubled  float64 // of messages
	cut                  float64 // of connections, while the server believes that they are open
	twice                float64 // of campaigns: the agent asks once more while its call waits
	aborted, unknown     float64 // of transactions
	pauses, crashes      bool    // of agents
	stalls, deaths       bool    // of instances
	deaf                 bool    // instances do not hear of events
	unpublished, relayed float64 // events that are not published right away; deaths of the relay between publishing and marking
	leaps                bool    // of agents' clocks
	storeLeaps           bool
	operators            bool
	seats                bool // an election has seats: their number changes, they are paused and halted
	people               bool // operators and verifiers give orders and verdicts
}

// none reports whether there are no faults, apart from an operator's calls.
func (f faults) none() bool { return f == faults{operators: f.operators, people: f.people} }

// leases are lengths that people configure: the default more often than others.
var leases = [...]time.Duration{
	2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute,
}

// draw draws a plan.
func (w *timeline) draw() plan {
	p := plan{
		elections: 1 + w.random.IntN(3),
		agents:    2 + w.random.IntN(5),
		instances: 1 + w.random.IntN(3),
		store:     kind(w.random.IntN(3)),
		swift:     w.between(time.Millisecond, 40*time.Millisecond),
		drift:     w.chance(0.8),
	}
	p.lease = leases[w.random.IntN(len(leases))]
	if w.chance(0.3) {
		p.lockDelay = w.upTo(2 * p.lease).Truncate(time.Millisecond)
	}
	if w.chance(0.7) {
		p.term = w.between(p.lease, 200*p.lease)
	}
	switch {
	case w.chance(0.7):
		p.wait = leadership.MaxWait
	case w.chance(0.7):
		p.wait = w.between(time.Second, leadership.MaxWait).Truncate(time.Millisecond)
	}
	if w.chance(0.4) {
		p.keyless = w.random.Float64()
	}
	p.lengths, p.margins = w.chance(0.4), w.chance(0.4)
	p.faults = w.drawFaults()
	p.mean = w.between(10*p.lease, 500*p.lease)
	if p.faults.people = w.chance(0.3); w.chance(0.3) {
		p.policy = w.drawPolicy(p.lease)
	}
	if w.chance(0.4) {
		p.ballot = w.drawBallot(p)
	}
	p.handing = w.drawHanding()
	if p.faults.people && p.policy != (leadership.TermPolicy{}) { // else no operator would approve
		p.policy.Series = w.drawSeries(p.lease)
	}
	return p
}

// drawSeries draws what terms may cost together.
func (w *timeline) drawSeries(lease time.Duration) (p leadership.SeriesPolicy) {
	if w.chance(0.7) {
		p.Failures, p.Within = 1+w.random.IntN(4), w.between(10*lease, 500*lease).Truncate(time.Millisecond)
	}
	if w.chance(0.5) {
		p.Budget.TokensUsed, p.BudgetWithin = 50+w.random.Int64N(500), w.between(50*lease, 500*lease).Truncate(time.Millisecond)
	}
	return p
}

// drawBallot draws who should lead, and how many must be present.
func (w *timeline) drawBallot(p plan) (b leadership.BallotPolicy) {
	all := leadership.Strategies()
	b.Strategy = all[w.random.IntN(len(all))]
	if w.chance(0.8) {
		b.Window = w.upTo(2 * time.Second).Truncate(time.Millisecond)
	} else {
		b.Window = leadership.NoWindow
	}
	if w.chance(0.2) {
		b.Require = "gpu"
	}
	switch b.Strategy {
	case leadership.StrategyCapability:
		b.Prefer = "far fast near"
		fallthrough
	case leadership.StrategyPriority, leadership.StrategyLeastLoaded:
		if b.Preempt = w.chance(0.5); b.Preempt && w.chance(0.5) {
			b.MinTerm = max(w.upTo(3*p.lease), time.Second).Truncate(time.Millisecond)
		}
	}
	if b.HasBallot() && w.chance(0.3) {
		electorate := agentNames[:p.agents]
		b.Quorum = leadership.QuorumPolicy{Electorate: leadership.NewNames(electorate...), Need: w.random.IntN(2)}
	}
	return b
}

// agentNames are the candidates of each election.
var agentNames = []string{"ann", "bob", "cy", "dee", "eve", "fay"}

// turns is how long a ballot may last when all goes well: the window, and a turn for each better
// bidder that has gone. One that asks for a quorum asks again until there is one.
func (p plan) turns() time.Duration {
	if !p.ballot.HasBallot() {
		return 0
	}
	d := windowOf(p.ballot) + time.Duration(p.agents)*rule.BidTurn + time.Second
	if p.ballot.Quorum.Electorate != "" {
		d += 10 * time.Second
	}
	return d
}

// windowOf is how long bids are collected.
func windowOf(b leadership.BallotPolicy) time.Duration {
	if b.Window == 0 && b.HasBallot() {
		return leadership.DefaultWindow
	}
	return max(b.Window, 0)
}

// drawPolicy draws limits of a term that some leaders come to.
func (w *timeline) drawPolicy(lease time.Duration) (p leadership.TermPolicy) {
	leases := func(least, most int) time.Duration {
		if w.chance(0.5) {
			return 0
		}
		return w.between(time.Duration(least)*lease, time.Duration(most)*lease).Truncate(time.Millisecond)
	}
	p.MaxTerm, p.StuckAfter, p.Cooldown = leases(5, 100), leases(3, 20), leases(1, 10)
	if p.Approval.Every = leases(10, 50); p.Approval.Every > 0 {
		p.Approval.Need = 1 + w.random.IntN(2)
	}
	p.Verdicts = w.random.IntN(3)
	if w.chance(0.5) {
		p.Budget.TokensUsed = 10 + w.random.Int64N(100)
	}
	if w.chance(0.5) {
		p.ErrorRate = leadership.ErrorRate{Max: 0.5, Min: 5}
	}
	if w.chance(0.2) {
		p.OnTrip = leadership.TripNotify
	}
	return p
}

func (w *timeline) drawFaults() faults {
	if w.chance(0.05) {
		return faults{operators: w.chance(0.5)}
	}
	some := func(most float64) float64 {
		if w.chance(0.5) {
			return 0
		}
		return w.random.Float64() * most
	}
	return faults{
		lost: some(0.1), late: some(0.05), doubled: some(0.05), cut: some(0.3), twice: some(0.3),
		aborted: some(0.2), unknown: some(0.1),
		pauses: w.chance(0.5), crashes: w.chance(0.5), stalls: w.chance(0.4), deaths: w.chance(0.4),
		deaf: w.chance(0.4), unpublished: some(0.5), relayed: some(0.5),
		leaps: w.chance(0.3), storeLeaps: w.chance(0.1), operators: w.chance(0.3),
	}
}

// shortest is the shortest lease that an agent asks for.
func (p plan) shortest() time.Duration {
	if p.lengths {
		return p.lease / 2
	}
	return p.lease
}

// shortestTrial is shortest, or the lease of a candidate on probation where there may be one. An
// agent that needs longer to stop could not lead then.
func (p plan) shortestTrial() time.Duration {
	if p.policy.Cooldown > 0 {
		return min(p.shortest(), leadership.ProbationLease)
	}
	return p.shortest()
}

// String is the plan in a line.
func (p plan) String() string {
	type fields plan
	return fmt.Sprintf("%+v", fields(p))
}
