package rule_test

import (
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// succeed plays a hand-over: the leader names a successor, that says that it is ready, the leader
// yields, and the successor comes. Steps are left out, or come twice; others come in between.
func (c *course) succeed(lease rule.Renewal) {
	for step := c.IntN(2); step < 4; step += pick(c, 0, 1, 1, 1) {
		id := c.candidate()
		if to := c.snap.Lease().Succession.To; to != "" && c.IntN(5) > 0 {
			id = to
		}
		one := incarnation{id, hash(byte(c.IntN(4)/3) + id[0])}
		switch pick(c, step, step, step, c.IntN(4)) {
		case 0:
			cmd := leadership.HandOver{LeaseRequest: lease.Request(), To: id, Within: pick(c, time.Second, 10*time.Second, time.Minute)}
			if id != lease.CandidateID {
				c.again("handOver", applies(cmd))
			}
		case 1:
			c.sayReady(one)
		case 2:
			c.again("yield", applies(leadership.Yield{LeaseRequest: lease.Request()}))
		case 3:
			if c.heir != (incarnation{}) && c.IntN(3) > 0 {
				one = c.heir
			}
			c.acquireAs(rule.AcquireCommand{CandidateID: one.id, KeyHash: one.key, Candidacy: leadership.Candidacy{Capabilities: leadership.NewNames("eu", "gpu", "ssd")}})
		}
		c.snap.Now = c.snap.Now.Add(time.Duration(c.IntN(500)) * time.Millisecond)
	}
}

// sayReady notes which incarnation the leader may yield to.
func (c *course) sayReady(one incarnation) {
	cmd := rule.Renewal{CandidateID: one.id, KeyHash: one.key, Token: c.snap.Record.Token}
	leads := c.snap.Record.LeaderID == one.id
	if c.again("ready", applies(leadership.SayReady{LeaseRequest: cmd.Request()})) && !leads {
		c.ready = one
	}
}

// parentNow is the lease that the present one stands on, as a strong read may find it: it goes on,
// has ended, or another term has begun.
func (c *course) parentNow() rule.ParentLease {
	p := rule.ParentLease{Parent: c.snap.Record.Standing.Parent, LeaderID: "ann"}
	if p.Token == 0 || c.IntN(2) == 0 {
		return rule.ParentLease{}
	}
	p.Token += leadership.Token(c.IntN(8) / 7)
	p.Until = c.snap.Now.Add(time.Duration(c.IntN(20)) * time.Second).Truncate(time.Microsecond)
	return p
}

// parentOf is the lease that a candidate names, or that the service looks up for it.
func (c *course) parentOf(s rule.Snapshot, cmd rule.AcquireCommand) (p rule.ParentLease) {
	policy := s.Record.Policy
	if policy.LeadersOf == "" && policy.Delegation.Parent == "" && c.IntN(8) > 0 || policy.LeadersOf != "" && c.IntN(4) == 0 {
		return p
	}
	p.Parent = leadership.Parent{Election: "root", Token: 1 + leadership.Token(c.IntN(2)), Until: s.Now.Add(time.Duration(c.IntN(20)) * time.Second).Truncate(time.Microsecond)}
	if p.LeaderID = cmd.CandidateID; policy.Delegation.Parent != "" && c.IntN(4) == 0 {
		p.LeaderID = ""
	}
	return p
}

// observeParent holds a lease that stands on another one to the end that this is known to have: by
// the call that was granted, and by the calls since that brought the same term of it.
func (c *course) observeParent(before rule.Snapshot) {
	r, said := c.snap.Record, c.parent
	at, was := r.Standing.Parent, before.Record.Standing.Parent
	switch {
	case r.LeaderID == "" || at.Token == 0:
		c.parentEnd = time.Time{}
		return
	case r.Token != before.Record.Token && r.Standing.EpochFrom == 0:
		c.parentEnd = said.Until
	case at.Token != was.Token || at.Election != was.Election:
		c.fatalf("the lease stood on %+v, and stands on %+v", was, at)
	case said.Token == at.Token && said.Until.After(c.parentEnd):
		c.tally["movedOn"]++
		c.parentEnd = said.Until
	}
	if r.LeaseEnd().After(c.parentEnd) {
		c.fatalf("its parent is known to last until %v, and it lasts until %v", c.parentEnd, r.LeaseEnd())
	}
}
