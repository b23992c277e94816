package telemetry

import (
	"context"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// handOverOutcome is how far a hand-over has come.
type handOverOutcome string

const (
	handOverStarted   handOverOutcome = "started"
	handOverCompleted handOverOutcome = "completed"
	handOverTimedOut  handOverOutcome = "timed_out"
	handOverReleased  handOverOutcome = "released"
)

// handedOver counts hand-overs, and times those that a transaction has completed.
func (m *Metrics) handedOver(ctx context.Context, tx transaction, events []leadership.Event) {
	now := tx.before.Record.Standing.Succession
	named := now.To != "" || now.Ready != ""
	for i, e := range events {
		switch {
		case e.Type == leadership.EventHandingOver && e.ReadDetail().Because == string(leadership.EndsHandOver):
			m.handOvers.Add(ctx, 1, with("outcome", handOverStarted))
		case !named:
		case e.Type == leadership.EventExpired:
			m.handOvers.Add(ctx, 1, with("outcome", handOverTimedOut))
		case e.Type == leadership.EventReleased && i+1 < len(events): // and acquired, in one commit
			m.handOvers.Add(ctx, 1, with("outcome", handOverCompleted))
			if now.To != "" {
				m.handOver.Record(ctx, max(e.At.Sub(now.Since), 0).Seconds())
			}
			if at := m.stopped(tx.before.Record); !at.IsZero() {
				m.gap.Record(ctx, max(e.At.Sub(at), 0).Seconds())
			}
		case e.Type == leadership.EventReleased:
			m.handOvers.Add(ctx, 1, with("outcome", handOverReleased))
		}
	}
}

// stopped returns when the leader has yielded: as its event has said or, if another instance has
// committed that and it was not heard of, as the record shows; zero if it does not.
func (m *Metrics) stopped(r rule.Record) time.Time {
	if at := m.elections.yielded(r.Election, r.Revision); !at.IsZero() {
		return at
	}
	if end := r.Standing.Succession.Yielded; end.Before(r.LeaseEnd()) {
		return end.Add(-rule.YieldWindow)
	}
	return time.Time{}
}
