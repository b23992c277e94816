package main

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
func (s *script) led(e leadership.Election) func() error {
	return func() error {
		cmd := leadership.Configure{Config: leadership.Config{Term: limits}}
		if _, err := s.service.Do(s.ctx, cmd.In(e)); err != nil {
			return err
		}
		return s.acquire(s.ann, e)()
	}
}

func (s *script) report(e leadership.Election, report string) func() error {
	return func() error {
		c := s.ann.lease(e, 1)
		c.Report = []byte(report)
		_, err := s.service.Renew(s.ctx, c)
		return err
	}
}

// deposed returns a step that sends a report which must trip.
func (s *script) deposed(e leadership.Election, report string) func() error {
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
	order := func(name string, c leadership.Order) func() error {
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
	return all(
		s.led(e),
		order("ban", banned),
		func() error {
			const repeated = "order that stands already"
			banned.Reason, banned.Actor = "ban", "ops"
			return s.count(repeated, func() error {
				_, err := s.service.Do(s.ctx, banned.In(e))
				return err
			})
		},
		order("lift", leadership.Order{Kind: leadership.OrderLift}),
		order("assign", leadership.Order{Kind: leadership.OrderAssign, CandidateID: s.ann.id, For: time.Hour}),
		order("pause", leadership.Order{Kind: leadership.OrderPause, For: time.Hour}),
		s.counted("overrides", func() error { _, err := s.service.Overrides(s.ctx, e); return err }),
		s.counted("explanation why a candidate does not lead", func() error {
			_, err := s.service.Explain(s.ctx, leadership.ExplainRequest{Election: e, CandidateID: s.bob.id})
			return err
		}),
		order("resume", leadership.Order{Kind: leadership.OrderResume}),
		s.counted("request of an approval", func() error {
			_, err := s.service.Do(s.ctx, leadership.RequestApproval{LeaseRequest: s.ann.lease(e, 1), Note: "the plan is ready"})
			return err
		}),
		order("approve", leadership.Order{Kind: leadership.OrderApprove, Token: 1}),
		s.counted("verdict", func() error {
			_, err := s.service.Do(s.ctx, leadership.Judge{Election: e, Token: 1, Verdict: leadership.VerdictGood, Evidence: "the totals agree", Actor: "checker"})
			return err
		}),
		order("approve, with a new epoch", leadership.Order{Kind: leadership.OrderApprove, Token: 1, NewEpoch: true}),
		order("evict", leadership.Order{Kind: leadership.OrderEvict}),
		s.counted("step down", func() error {
			_, err := s.service.Do(s.ctx, leadership.StepDown{LeaseRequest: s.ann.lease(e, 2), Reason: "it is time", For: time.Minute})
			return err
		}),
	)
}

// candidacies lets candidates bid for a vacant election, and challenge a leader.
func (s *script) candidacies() error {
	const vacant, held = "balloted", "challenged"
	configured := func(e leadership.Election, p leadership.BallotPolicy) func() error {
		return func() error {
			cmd := leadership.Configure{Config: leadership.Config{LeaseDuration: time.Hour, Ballot: p}}
			_, err := s.service.Do(s.ctx, cmd.In(e))
			return err
		}
	}
	refused := func(e leadership.Election, id leadership.CandidateID, priority int64) func() error {
		a := newAgent(id)
		return func() error {
			ask := a.ask(e)
			ask.Priority = priority
			if _, err := s.service.Acquire(s.ctx, bidding(ask)); !errors.Is(err, leadership.LeaseHeld) {
				return fmt.Errorf("it was not refused: %w", err)
			}
			return nil
		}
	}
	withdrawn := func(e leadership.Election, id leadership.CandidateID) func() error {
		return func() error {
			_, err := s.service.Do(s.ctx, leadership.Withdraw{Election: e, CandidateID: id})
			return err
		}
	}
	return all(
		configured(vacant, leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: leadership.MaxWindow}),
		s.counted("bid, the first of a ballot", refused(vacant, "one", 1)),
		s.counted("bid after it", refused(vacant, "two", 2)),
		s.counted("bid that two others outrank", refused(vacant, "nil", 0)),
		s.counted("withdrawal of a bid", withdrawn(vacant, "two")),
		configured(held, leadership.BallotPolicy{Strategy: leadership.StrategyPriority, Window: leadership.NoWindow, Preempt: true}),
		s.acquire(s.ann, held),
		s.counted("preemption: a better candidate asks", func() error {
			ask := s.bob.ask(held)
			ask.Priority = 1
			if _, err := s.service.Acquire(s.ctx, ask); !errors.Is(err, leadership.LeaseHeld) {
				return fmt.Errorf("it was not refused: %w", err)
			}
			return nil
		}),
		s.counted("preemption: the leader's first renewal after it", s.renew(s.ann, held, 1)),
		s.counted("preemption: each further renewal until its end", s.renew(s.ann, held, 1)),
		s.counted("preemption: the better candidate goes away", withdrawn(held, s.bob.id)),
	)
}
