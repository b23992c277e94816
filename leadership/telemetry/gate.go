package telemetry

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/rule"
	"regent/leadership/wire"
)

const (
	outcomeOK      = "ok"
	outcomeLeft    = "caller_left" // the caller cancelled while it waited in line
	reasonConflict = "conflict"
)

// Enter implements instance.Gate. It counts operations, waiting candidates, open streams and long
// polls, waits for acknowledgements, and acts under old tokens. It refuses nothing.
func (m *Metrics) Enter(ctx context.Context, op instance.Op) (done func(error), err error) {
	switch {
	case m.idle, op.Further:
		return nil, nil
	case op.Waits && op.Cost == wire.CostCampaign:
		m.waiting.Add(1)
		leave := m.elections.wait(op.Election)
		return func(err error) {
			m.operated(ctx, op, err)
			leave()
			m.waiting.Add(-1)
		}, nil
	case op.Waits:
		open := &m.watchers
		if op.Verb == wire.VerbAcknowledgement {
			open = &m.followed
		}
		open.Add(1)
		return func(err error) {
			open.Add(-1)
			if op.Metric != "" {
				m.operated(ctx, op, err)
			}
		}, nil
	case op.Metric == "":
		return nil, nil
	case slices.Contains(ledgerOps(), op.Metric):
		began := time.Now()
		return func(err error) {
			m.operated(ctx, op, err)
			m.left(ctx, op, time.Since(began), err)
		}, nil
	}
	return func(err error) { m.operated(ctx, op, err) }, nil
}

// operated counts an operation by its outcome.
func (m *Metrics) operated(ctx context.Context, op instance.Op, err error) {
	outcome := outcomeOK
	switch {
	case errors.Is(err, rule.ErrCallerLeft):
		outcome = outcomeLeft
	case err != nil:
		var code leadership.Code
		errors.As(err, &code)
		outcome = lower(wire.MeaningOf(code).Code)
	}
	m.operations.Add(ctx, 1, m.labels[operation{op.Metric, outcome}])
	refusal, ok := errors.AsType[*leadership.Error](err)
	if !ok {
		return
	}
	if op.Cost == wire.CostCampaign && refusal.Code == leadership.LeaseHeld && slices.Contains(refusals, refusal.Reason) {
		m.contention.Add(ctx, 1, with("reason", lower(refusal.Reason)))
	}
	if op.Token > 0 && m.late(op, refusal) {
		m.splitBrain.Add(ctx, 1, with("op", op.Metric))
	}
}

// left measures the data that a leader has stored.
func (m *Metrics) left(ctx context.Context, op instance.Op, took time.Duration, err error) {
	if err != nil {
		return
	}
	label := with("op", op.Metric)
	m.ledger.Record(ctx, took.Seconds(), label)
	m.ledgerSize.Record(ctx, int64(op.Bytes), label)
	m.entries.Add(ctx, int64(op.Entries))
}

// underWay is how long after a grant a call under the previous token may arrive that was sent in
// time.
const underWay = 5 * time.Second

// late reports whether a call under an old token was refused more than underWay after a newer token
// was granted.
//
// A leader stops before its lease ends, and the next one is never granted earlier. So a leader that
// renews later believes that it leads although another one does, and a token that is checked later
// was sent by such a leader. A leader that goes on in a new epoch learns of its new token when it
// renews, at the latest when its present lease ends.
func (m *Metrics) late(op instance.Op, refusal *leadership.Error) bool {
	if refusal.Code != leadership.LeaseLost && refusal.Code != leadership.TokenStale || refusal.Lease == nil || refusal.Reason == leadership.ReasonEpoch {
		return false
	}
	now, within := refusal.Lease, underWay
	if op.Token == now.Token-1 && m.elections.goesOn(op.Election, now.Token) {
		within += now.LeaseDuration
	}
	recent := now.State == leadership.Held && now.ReadAt.Sub(now.AcquiredAt) < within
	return op.Token < now.Token && !recent
}

// operation are the labels of an operation, or of a call of the store.
type operation struct{ op, outcome string }

// labelsOf makes all labels once, because renewals are many.
func labelsOf(ops, outcomes []string) map[operation]metric.MeasurementOption {
	labels := map[operation]metric.MeasurementOption{}
	for _, op := range ops {
		for _, outcome := range outcomes {
			labels[operation{op, outcome}] = metric.WithAttributeSet(attribute.NewSet(attribute.String("op", op), attribute.String("outcome", outcome)))
		}
	}
	return labels
}

// operations returns the operations that the verbs are counted as.
func operations() (all []string) {
	for _, row := range wire.Verbs() {
		if row.Metric != "" {
			all = append(all, row.Metric)
		}
	}
	return all
}
