package telemetry

import (
	"context"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// handOverOutcome is the progress of a hand-over.
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
		case e.Type == leadership.EventReleased && i+1 < len(events): // released and acquired in one commit
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

// stopped returns when the leader yielded: according to the event or, if another instance committed
// that and it was not heard here, according to the record; zero if neither shows it.
func (m *Metrics) stopped(r rule.Record) time.Time {
	if at := m.elections.yielded(r.Election, r.Revision); !at.IsZero() {
		return at
	}
	if end := r.Standing.Succession.Yielded; end.Before(r.LeaseEnd()) {
		return end.Add(-rule.YieldWindow)
	}
	return time.Time{}
}
