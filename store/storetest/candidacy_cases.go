package storetest

import (
	"time"

	"regent/leadership"
)

// ballotTries is how often a candidate asks again until it is granted. More than twice it must only
// if bids become void because the machine is slow.
const ballotTries = 50

var candidacyCases = []protocolCase{
	{"a candidate that does not wait bids, is told when to ask again, and the best is granted then", func(p *pair) {
		p.configure(leadership.Config{LeaseDuration: long, Ballot: leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: time.Second}})
		low, high := p.rated("low", 1), p.rated("high", 2)
		e := p.asks(p.a, low, leadership.LeaseHeld)
		if e.Reason != leadership.ReasonBallot || e.Cause == nil || e.Cause.Position != 1 || e.RetryAfter <= 0 || e.RetryAfter > 2*time.Second {
			p.Errorf("the first bidder is told %+v, %+v", e, e.Cause)
		}
		if e.Lease == nil || e.Lease.State != leadership.Vacant || e.Lease.Revision != 1 {
			p.Errorf("the first bidder is shown %+v", e.Lease)
		}
		for range ballotTries {
			g, err := p.b.Acquire(p.Context(), high)
			if err == nil {
				p.leads(g.Lease, "high", 1)
				p.leads(p.get(), "high", 1)
				e := p.asks(p.a, low, leadership.LeaseHeld)
				if e.Reason != leadership.ReasonHeld {
					p.Errorf("under a leader the other is told %+v", e)
				}
				return
			}
			e := p.refused(err, leadership.LeaseHeld)
			if e.Reason != leadership.ReasonBallot {
				p.Errorf("the best is told %+v", e)
			}
			time.Sleep(e.RetryAfter)
		}
		p.Errorf("the best was not granted: %+v", p.get())
	}},
	{"a candidate that lacks a required capability is refused at once, whether or not it would wait", func(p *pair) {
		p.configure(leadership.Config{Ballot: leadership.BallotPolicy{Require: leadership.NewNames("gpu", "ssd")}})
		able := p.rated("able", 0)
		able.Capabilities = leadership.NewNames("cpu", "gpu", "ssd")
		for range 2 {
			for _, has := range []leadership.Names{"", "gpu", "cpu ssd"} {
				ask := p.rated("ann", 0)
				ask.Capabilities, ask.Wait = has, 20*time.Second
				begun := time.Now()
				p.asks(p.b, ask, leadership.NotEligible)
				if took := time.Since(begun); took >= ask.Wait {
					p.Errorf("with %q it has waited for %v", has, took)
				}
			}
			g, err := p.a.Acquire(p.Context(), able)
			if err != nil {
				p.Fatal(err)
			}
			p.leads(g.Lease, "able", 1)
		}
	}},
	{"a witness is never granted", func(p *pair) {
		p.configure(leadership.Config{LeaseDuration: long})
		wit := p.rated("wit", 9)
		wit.Role = leadership.RoleWitness
		if e := p.asks(p.a, wit, leadership.LeaseHeld); e.Reason != leadership.ReasonWitness {
			p.Errorf("a witness is told %+v", e)
		}
		p.vacant(p.get(), 0)
		p.acquire("ann")
		p.release("ann", 1)
		p.asks(p.b, wit, leadership.LeaseHeld)
		p.vacant(p.get(), 1)
	}},
	{"a better candidate ends the term at the end that the leader was promised", func(p *pair) {
		p.configure(preempting())
		g, err := p.a.Acquire(p.Context(), p.rated("ann", 1))
		if err != nil {
			p.Fatal(err)
		}
		p.asks(p.b, p.rated("ann0", 1), leadership.LeaseHeld)
		if l := p.get(); !l.EndsBy.IsZero() || l.Succession.To != "" {
			p.Errorf("an equal candidate has ended the term: %+v", l)
		}
		p.asks(p.b, p.rated("bob", 2), leadership.LeaseHeld)
		l := p.get()
		if l.EndsBecause != leadership.EndsHandOver || l.Succession.To != "bob" || l.EndsIn-l.ExpiresIn > time.Millisecond {
			p.Errorf("challenged by bob: %+v", l)
		}
		p.about("the rest of the term", l.EndsIn, time.Hour)
		renewed, err := p.b.Renew(p.Context(), p.of("ann", g.Token))
		if err != nil || renewed.ExpiresIn > l.EndsIn || renewed.EndsBecause != leadership.EndsHandOver {
			p.Errorf("renewed: %+v, %v", renewed, err)
		}
		p.release("ann", g.Token)
		g, err = p.a.Acquire(p.Context(), p.rated("bob", 2))
		if err != nil {
			p.Fatal(err)
		}
		p.leads(g.Lease, "bob", 2)
	}},
}

// rated is an acquire with a priority.
func (p *pair) rated(candidate string, priority int64) leadership.AcquireRequest {
	ask := p.ask(candidate)
	ask.Priority = priority
	return ask
}

// asks expects a refusal.
func (p *pair) asks(s Subject, r leadership.AcquireRequest, code leadership.Code) *leadership.Error {
	p.Helper()
	g, err := s.Acquire(p.Context(), r)
	if err == nil {
		p.Fatalf("%s was granted token %d, want %s", r.CandidateID, g.Token, code)
	}
	e := p.refused(err, code)
	if e == nil {
		p.Fatalf("%s is refused by %v, which has no details", r.CandidateID, err)
	}
	return e
}
