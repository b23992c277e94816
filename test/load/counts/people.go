package counts

import (
	"errors"
	"fmt"
	"time"

	"regent/leadership"
)

// limits are the limits of the elections in which people and reports are counted. None but the
// budget is ever reached.
var limits = leadership.TermPolicy{
	MaxTerm:    24 * time.Hour,
	Approval:   leadership.ApprovalPolicy{Every: time.Hour},
	StuckAfter: time.Hour,
	Budget:     leadership.Counters{TokensUsed: 100},
	Cooldown:   time.Minute,
	Verdicts:   2,
}

// led lets ann lead an election with limits, which is not counted.
func (s *script) led(e leadership.Election) step {
	return func() error {
		return all(s.configures(e, leadership.Config{Term: limits, LeaseDuration: leadership.DefaultLeaseDuration}), s.acquire(s.ann, e))
	}
}

func (s *script) report(e leadership.Election, report string) step {
	return func() error {
		c := s.ann.lease(e, 1)
		c.Report = []byte(report)
		_, err := s.service.Renew(s.ctx, c)
		return err
	}
}

// deposed returns a step that sends a report which must trip.
func (s *script) deposed(e leadership.Election, report string) step {
	return func() error {
		if err := s.report(e, report)(); !errors.Is(err, leadership.LeaseLost) {
			return fmt.Errorf("it has not tripped: %w", err)
		}
		return nil
	}
}

// reports lets ann report, until it trips.
func (s *script) reports() error {
	const e = "reporting"
	return all(
		s.led(e),
		s.counted("renewal with a report", s.report(e, `{"progress":1}`)),
		s.counted("renewal with a report after it", s.report(e, `{"progress":2}`)),
		s.counted("renewal with a report that trips", s.deposed(e, `{"progress":2,"tokensUsed":101}`)),
		s.counted("the same again, whose reply was lost", s.deposed(e, `{"progress":2,"tokensUsed":101}`)),
	)
}

// people gives each order of operators, a verdict, and the leader's own calls.
func (s *script) people() error {
	const e = "people"
	var ban leadership.OverrideID
	order := func(name string, c leadership.Order) step {
		return s.counted("order: "+name, func() error {
			c.Reason, c.Actor = name, "ops"
			if c.Kind == leadership.OrderLift {
				c.Override = ban
			}
			l, err := s.service.Do(s.ctx, c.In(e))
			if c.Kind == leadership.OrderBan && err == nil {
				ban = l.Overrides.List()[0].ID
			}
			return err
		})
	}
	banned := leadership.Order{Kind: leadership.OrderBan, CandidateID: s.bob.id, For: time.Hour}
	again := banned
	again.Reason, again.Actor = "ban", "ops"
	return all(
		s.led(e),
		order("ban", banned),
		s.counted("order that stands already", s.sends(again.In(e))),
		order("lift", leadership.Order{Kind: leadership.OrderLift}),
		order("assign", leadership.Order{Kind: leadership.OrderAssign, CandidateID: s.ann.id, For: time.Hour}),
		order("pause", leadership.Order{Kind: leadership.OrderPause, For: time.Hour}),
		s.counted("overrides", func() error { _, err := s.service.Overrides(s.ctx, e); return err }),
		s.counted("explanation why a candidate does not lead", func() error {
			_, err := s.service.Explain(s.ctx, leadership.ExplainRequest{Election: e, CandidateID: s.bob.id})
			return err
		}),
		order("resume", leadership.Order{Kind: leadership.OrderResume}),
		s.counted("request of an approval", s.sends(leadership.RequestApproval{LeaseRequest: s.ann.lease(e, 1), Note: "the plan is ready"})),
		order("approve", leadership.Order{Kind: leadership.OrderApprove, Token: 1}),
		s.counted("verdict", s.sends(leadership.Judge{Election: e, Token: 1, Verdict: leadership.VerdictGood, Evidence: "the totals agree", Actor: "checker"})),
		order("approve, with a new epoch", leadership.Order{Kind: leadership.OrderApprove, Token: 1, NewEpoch: true}),
		order("evict", leadership.Order{Kind: leadership.OrderEvict}),
		s.counted("step down", s.sends(leadership.StepDown{LeaseRequest: s.ann.lease(e, 2), Reason: "it is time", For: time.Minute})),
	)
}

// candidacies lets candidates bid for a vacant election, and challenge a leader.
func (s *script) candidacies() error {
	const vacant, held = "balloted", "challenged"
	refused := func(a agent, e leadership.Election, priority int64) step {
		ask := a.ask(e)
		ask.Priority, ask.InLine.Writes = priority, e == vacant // its instance knows of the ballot
		return refuses(func() error { _, err := s.service.Acquire(s.ctx, ask); return err })
	}
	withdrawn := func(e leadership.Election, id leadership.CandidateID) step {
		return s.sends(leadership.Withdraw{Election: e, CandidateID: id})
	}
	return all(
		s.configures(vacant, leadership.Config{Ballot: leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: leadership.MaxWindow}}),
		s.counted("bid, the first of a ballot", refused(newAgent("one"), vacant, 1)),
		s.counted("bid after it", refused(newAgent("two"), vacant, 2)),
		s.counted("bid that two others outrank", refused(newAgent("nil"), vacant, 0)),
		s.counted("withdrawal of a bid", withdrawn(vacant, "two")),
		s.configures(held, leadership.Config{Ballot: leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: leadership.NoWindow, Preempt: true}}),
		s.acquire(s.ann, held),
		s.counted("preemption: a better candidate asks", refused(s.bob, held, 1)),
		s.counted("preemption: the leader's first renewal after it", s.renew(s.ann, held, 1)),
		s.counted("preemption: each further renewal until its end", s.renew(s.ann, held, 1)),
		s.counted("preemption: the better candidate goes away", withdrawn(held, s.bob.id)),
	)
}
