package rule_test

import (
	"encoding/json"
	"errors"
	"math/bits"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// voters is what a careful observer notes of ballots and challenges, by the calls alone: what each
// candidate said last, and when.
type voters struct {
	asked  rule.AcquireCommand                            // the call that is under way
	calls  map[leadership.CandidateID]vote                // of the present vacancy
	opened time.Time                                      // the first of them that bid
	said   map[leadership.CandidateID]rule.AcquireCommand // by the present leader, at its grant
}

type vote struct {
	cmd rule.AcquireCommand
	at  time.Time
}

func newVoters() *voters {
	return &voters{calls: make(map[leadership.CandidateID]vote), said: make(map[leadership.CandidateID]rule.AcquireCommand)}
}

// asks notes a call. What was bid before counts on if the candidate is refused as not eligible.
func (v *voters) asks(s rule.Snapshot, cmd rule.AcquireCommand) {
	v.asked = cmd
	if _, err := rule.Acquire(s, cmd); !s.Live() && !errors.Is(err, leadership.NotEligible) {
		v.calls[cmd.CandidateID] = vote{cmd, s.Now}
	}
}

func (c *course) ballotPolicy() leadership.BallotPolicy {
	if c.IntN(3) == 0 {
		return leadership.BallotPolicy{}
	}
	p := leadership.BallotPolicy{Strategy: pick(c, leadership.Strategies()...), Window: pick(c, 0, 0, leadership.NoWindow, 100*time.Millisecond, time.Second)}
	if c.IntN(4) == 0 {
		p.Require = "gpu"
	}
	switch p.Strategy {
	case leadership.StrategyCapability:
		p.Prefer = pick(c, leadership.NewNames("ssd"), leadership.NewNames("eu", "ssd"))
		fallthrough
	case leadership.StrategyPriority, leadership.StrategyLeastLoaded:
		if p.Preempt = c.IntN(2) == 0; p.Preempt {
			p.MinTerm = pick(c, 0, time.Second)
		}
	}
	if c.IntN(4) == 0 && p.Window != leadership.NoWindow {
		p.Quorum = leadership.QuorumPolicy{Electorate: leadership.NewNames("ann", "bob", "wit"), Need: c.IntN(3)}
	}
	return p
}

// campaign lets candidates ask, several of them if there is something to decide among them.
func (c *course) campaign() {
	c.acquire()
	if p := c.snap.Record.Policy.Ballot; p.HasBallot() || p.Preempt {
		for range c.IntN(10) {
			c.snap.Now = c.snap.Now.Add(time.Duration(c.IntN(200)) * time.Millisecond)
			if c.snap.Record.Standing.Challenger != "" && c.IntN(3) == 0 {
				c.withdraw()
			}
			c.acquire()
		}
	}
}

// candidacy is what a candidate says of itself, and its instance with it.
func (c *course) candidacy(cmd *rule.AcquireCommand) {
	cmd.Priority, cmd.Load, cmd.Waited = int64(c.IntN(4)), int64(c.IntN(3)), time.Duration(c.IntN(3))*time.Second
	cmd.Capabilities = pick(c, "gpu", leadership.NewNames("gpu", "ssd"), leadership.NewNames("eu", "gpu", "ssd"), "ssd")
	cmd.Secret = pick(c, "0011223344556677", "8899aabbccddeeff")
	if c.IntN(10) == 0 {
		cmd.Role = leadership.RoleWitness
	}
	if c.IntN(10) == 0 {
		cmd.Withdraw = c.candidate()
	}
	if c.IntN(2) == 0 {
		knows := c.IntN(8)
		cmd.Present = rule.Presence{"ann": knows&1 == 1, "bob": knows&2 == 2, "wit": knows&4 == 4}
	}
}

// withdraw lets an instance say that a candidate has gone.
func (c *course) withdraw() {
	id := c.candidate()
	if challenger := c.snap.Record.Standing.Challenger; challenger != "" && c.IntN(2) == 0 {
		id = challenger
	}
	before := c.snap
	rule := applies(leadership.Withdraw{CandidateID: id})
	if err := c.do("withdraw", rule); err == nil && c.snap.Record.Standing != before.Record.Standing {
		c.tally["withdrawn"]++
		c.last = "withdraw again"
		c.replay(rule)
	}
}

// voted holds a committed change to what the policy says of ballots and challenges.
func (c *course) voted(before rule.Snapshot, ch rule.Change) {
	r, v := c.snap.Record, c.voters
	if ch.Quiet {
		if r.Policy != before.Record.Policy || len(ch.Events) > 0 || c.last != "acquire" && c.last != "withdraw" {
			c.fatalf("a quiet change from %+v", before.Record)
		}
	}
	if r.LeaderID != "" && r.Standing.Bids != "" {
		c.fatalf("bids while a candidate leads")
	}
	if c.last == "acquire" && r.LeaderID == "" && r.Standing.Bids != "" {
		c.tally["bid"]++
		if v.opened.IsZero() {
			v.opened = before.Now
		}
	}
	for _, e := range ch.Events {
		switch e.Type {
		case leadership.EventAcquired:
			c.elected(before, e)
			said := v.asked
			*v = *newVoters()
			v.said[e.LeaderID] = said
		case leadership.EventHandingOver:
			if !strings.Contains(e.Detail, `"because":"handOver"`) {
				c.preempted(before, e)
			}
		case leadership.EventConfigured, leadership.EventRecreated, leadership.EventDeleted, leadership.EventPaused, leadership.EventBanned, leadership.EventAssigned:
			v.calls, v.opened = make(map[leadership.CandidateID]vote), time.Time{}
		}
	}
}

// elected holds a grant to its ballot: the candidate is no witness and has what is required, the
// window has gone by, and enough members are present in what was said lately.
func (c *course) elected(before rule.Snapshot, e leadership.Event) {
	p, cmd := before.Record.Policy.Ballot, c.voters.asked
	if cmd.Role == leadership.RoleWitness || e.LeaderID != cmd.CandidateID {
		c.fatalf("%s is granted to %+v", e.LeaderID, cmd)
	}
	for _, name := range p.Require.List() {
		if !cmd.Capabilities.Has(name) {
			c.fatalf("granted without %s", name)
		}
	}
	if !p.HasBallot() || before.Live() { // it takes over
		return
	}
	c.tally["balloted"]++
	if opened := c.voters.opened; opened.IsZero() || before.Now.Sub(opened) < p.Window {
		c.fatalf("granted at %v, in a ballot that was opened at %v for %v", before.Now, opened, p.Window)
	}
	var present uint32
	for id, call := range c.voters.calls {
		if before.Now.Sub(call.at) > p.Window+4*time.Second {
			continue
		}
		for i, member := range p.Quorum.Electorate.List() {
			if member := leadership.CandidateID(member); member == id || call.cmd.Present[member] {
				present |= 1 << i
			}
		}
	}
	if have := bits.OnesCount32(present); have < p.Quorum.Needed() {
		c.fatalf("granted with %d of %d members present", have, p.Quorum.Needed())
	}
	var detail struct{ Bids, Place int }
	if err := json.Unmarshal([]byte(e.Detail), &detail); err != nil || detail.Place < 1 || detail.Place > detail.Bids || detail.Bids > len(c.voters.calls) {
		c.fatalf("%d have asked, and the event says %s, %v", len(c.voters.calls), e.Detail, err)
	}
}

// preempted holds a challenge to its policy: it is by a candidate that is strictly better than what
// the leader said at its grant, and after minTerm.
func (c *course) preempted(before rule.Snapshot, e leadership.Event) {
	p, cmd := before.Record.Policy.Ballot, c.voters.asked
	leader := c.voters.said[e.LeaderID]
	preferred := func(cmd rule.AcquireCommand) (n int) {
		for _, name := range p.Prefer.List() {
			if cmd.Capabilities.Has(name) {
				n++
			}
		}
		return n
	}
	var better bool
	switch p.Strategy {
	case leadership.StrategyPriority:
		better = cmd.Priority > leader.Priority
	case leadership.StrategyCapability:
		better = preferred(cmd) > preferred(leader) || preferred(cmd) == preferred(leader) && cmd.Priority > leader.Priority
	case leadership.StrategyLeastLoaded:
		better = cmd.Load < leader.Load
	}
	if !better || !p.Preempt || cmd.Role == leadership.RoleWitness || leader.CandidateID != e.LeaderID || cmd.CandidateID == e.LeaderID || before.Now.Sub(before.Record.AcquiredAt) < p.MinTerm {
		c.fatalf("%+v preempts %+v", cmd, leader)
	}
	if len(c.bars(cmd.CandidateID, before.Now)) > 0 || !strings.Contains(e.Detail, string(cmd.CandidateID)) {
		c.fatalf("%s preempts against %+v: %s", cmd.CandidateID, c.orders, e.Detail)
	}
}

func (c *course) notEligible(before rule.Snapshot, cmd rule.AcquireCommand) {
	c.tally[string(leadership.NotEligible)]++
	for _, name := range before.Record.Policy.Ballot.Require.List() {
		if !cmd.Capabilities.Has(name) {
			return
		}
	}
	p := before.Record.Policy
	if of := p.LeadersOf; of != "" && cmd.Parent.Token == 0 || p.Delegation.Parent == "" && cmd.Parent.Token > 0 && !before.Now.Before(cmd.Parent.Until) {
		return
	}
	c.fatalf("%+v is not eligible", cmd)
}

// waitsForBallot holds a refusal because of a ballot to what can be known from outside.
func (c *course) waitsForBallot(before rule.Snapshot, cmd rule.AcquireCommand, e *leadership.Error, why leadership.Explanation) {
	p := before.Record.Policy.Ballot
	switch {
	case before.Live() || len(c.bars(cmd.CandidateID, before.Now)) > 0 && before.Record.LeaderID == "":
		c.fatalf("refused with %v, and a ballot is not what bars it: %+v", e, c.orders)
	case e.RetryAfter <= 0 || e.Cause == nil || e.Cause.Left != e.RetryAfter:
		c.fatalf("refused with %v after %v and %+v", e, e.RetryAfter, e.Cause)
	case cmd.Role != leadership.RoleWitness && !p.HasBallot():
		c.fatalf("refused with %v, and there is no ballot", e)
	case e.RetryAfter > p.Window+time.Duration(len(c.voters.calls))*rule.BidTurn+2*time.Second:
		c.fatalf("refused with %v: that is long", e)
	}
	for _, cause := range why.Causes {
		if cause.Code == leadership.ReasonHeld || cause.Code == leadership.ReasonLockDelay {
			c.fatalf("refused with %v, and explained as %+v", e, why.Causes)
		}
	}
}
