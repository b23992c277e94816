package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

type storeOp string

const (
	storeGet         storeOp = "get"
	storeList        storeOp = "list"
	storeHeld        storeOp = "held"
	storeRetirable   storeOp = "retirable"
	storeUpdate      storeOp = "update"
	storeRenew       storeOp = "renew"
	storeEvents      storeOp = "events"
	storeSince       storeOp = "since"
	storeUnannounced storeOp = "unannounced"
	storeMark        storeOp = "mark"
)

type outcome string

const (
	done        outcome = outcomeOK
	refused     outcome = "refused"
	unavailable outcome = "unavailable"
	unknown     outcome = "unknown"
)

func outcomeOf(err error) outcome {
	switch {
	case err == nil, errors.Is(err, rule.ErrNotRenewed): // ErrNotRenewed is an answer, not a failure
		return done
	case errors.Is(err, leadership.OutcomeUnknown):
		return unknown
	case errors.Is(err, leadership.StoreUnavailable):
		return unavailable
	}
	return refused
}

// Store returns the store with its calls timed, its commits counted and its answers remembered. If
// the store can report that it has failed for good, so can the result. A Metrics has one store.
func (m *Metrics) Store(inner service.Store) service.Store {
	if m.idle {
		return inner
	}
	s := &store{inner, m}
	m.measured.Store(s)
	if b, ok := inner.(breakable); ok {
		return struct {
			*store
			breakable
		}{s, b}
	}
	return s
}

// breakable is a store that can fail for good, such as a local one.
type breakable interface{ Broken() <-chan struct{} }

type store struct {
	service.Store
	m *Metrics
}

// time begins a call of the store; ended takes the call's error. There is a span if the caller has
// one.
func (m *Metrics) time(ctx context.Context, op storeOp) (context.Context, func(error)) {
	began, span := time.Now(), trace.Span(noop.Span{})
	if trace.SpanContextFromContext(ctx).IsValid() {
		ctx, span = m.tracer.Start(ctx, "store "+string(op), trace.WithSpanKind(trace.SpanKindClient))
	}
	return ctx, func(err error) {
		what := outcomeOf(err)
		if what == unavailable || what == unknown {
			span.SetStatus(codes.Error, string(what))
		}
		span.End()
		m.store.Record(ctx, time.Since(began).Seconds(), m.calls[operation{string(op), string(what)}])
	}
}

// timed makes a call of the store.
func timed[T any](ctx context.Context, m *Metrics, op storeOp, call func(context.Context) (T, error)) (T, error) {
	ctx, ended := m.time(ctx, op)
	answer, err := call(ctx)
	ended(err)
	return answer, err
}

// transaction is the last run of a decision.
type transaction struct {
	runs    int
	before  rule.Snapshot
	change  rule.Change
	refused error
}

func (s *store) Update(ctx context.Context, e leadership.Election, x rule.Expect, decide func(rule.Snapshot) (rule.Change, error)) (rule.Snapshot, error) {
	ctx, ended := s.m.time(ctx, storeUpdate)
	var tx transaction
	after, err := s.Store.Update(ctx, e, x, func(snap rule.Snapshot) (rule.Change, error) {
		ch, err := decide(snap)
		tx = transaction{tx.runs + 1, snap, ch, err} // runs counts repetitions after a conflict too
		return ch, err
	})
	ended(err)
	if tx.runs > 1 {
		s.m.contention.Add(ctx, int64(tx.runs-1), with("reason", reasonConflict))
	}
	switch {
	case err == nil:
		s.m.committed(ctx, x, tx, after)
	case tx.refused != nil: // the snapshot is true nevertheless
		s.m.elections.learn(tx.before)
	}
	return after, err
}

func (s *store) Get(ctx context.Context, e leadership.Election) (rule.Snapshot, error) {
	snap, err := timed(ctx, s.m, storeGet, func(ctx context.Context) (rule.Snapshot, error) { return s.Store.Get(ctx, e) })
	if err == nil {
		s.m.elections.learn(snap)
	}
	return snap, err
}

func (s *store) List(ctx context.Context, prefix string, after leadership.Election, limit int) (rule.Listing, error) {
	l, err := timed(ctx, s.m, storeList, func(ctx context.Context) (rule.Listing, error) { return s.Store.List(ctx, prefix, after, limit) })
	s.m.elections.learn(l.Snapshots...)
	return l, err
}

func (s *store) Held(ctx context.Context, after leadership.Election, limit int) (rule.Listing, error) {
	l, err := timed(ctx, s.m, storeHeld, func(ctx context.Context) (rule.Listing, error) { return s.Store.Held(ctx, after, limit) })
	s.m.elections.learn(l.Snapshots...)
	return l, err
}

func (s *store) Retirable(ctx context.Context, at time.Time, limit int) ([]leadership.Election, error) {
	return timed(ctx, s.m, storeRetirable, func(ctx context.Context) ([]leadership.Election, error) { return s.Store.Retirable(ctx, at, limit) })
}

// Renew implements service.Store. Its outcome is its worst answer.
func (s *store) Renew(ctx context.Context, leases []rule.Renewal) []rule.Renewed {
	ctx, ended := s.m.time(ctx, storeRenew)
	answers := s.Store.Renew(ctx, leases)
	var worst error
	for i := range answers {
		switch a := &answers[i]; {
		case a.Err == nil:
			s.m.elections.learn(a.Snapshot()) // a late renewal is taken back by a later change, which is seen, too
		case worst == nil, outcomeOf(a.Err) == unknown, outcomeOf(worst) == done:
			worst = a.Err
		}
	}
	ended(worst)
	s.m.batch.Record(ctx, int64(len(leases)))
	return answers
}

func (s *store) Events(ctx context.Context, e leadership.Election, after leadership.Revision, limit int) ([]leadership.Event, error) {
	return timed(ctx, s.m, storeEvents, func(ctx context.Context) ([]leadership.Event, error) { return s.Store.Events(ctx, e, after, limit) })
}

func (s *store) Since(ctx context.Context, after time.Time, limit int) (rule.Recent, error) {
	return timed(ctx, s.m, storeSince, func(ctx context.Context) (rule.Recent, error) { return s.Store.Since(ctx, after, limit) })
}

// Unannounced implements service.Store. A read of the whole outbox shows the age of its oldest
// event.
func (s *store) Unannounced(ctx context.Context, e leadership.Election, limit int) ([]leadership.Event, error) {
	events, err := timed(ctx, s.m, storeUnannounced, func(ctx context.Context) ([]leadership.Event, error) { return s.Store.Unannounced(ctx, e, limit) })
	if e != "" || err != nil {
		return events, err
	}
	var age time.Duration
	now := s.m.elections.now()
	for _, event := range events {
		age = max(age, now.Sub(event.At))
	}
	s.m.unannounced.Store(int64(age))
	return events, err
}

func (s *store) MarkAnnounced(ctx context.Context, ids []leadership.EventID) error {
	ctx, ended := s.m.time(ctx, storeMark)
	err := s.Store.MarkAnnounced(ctx, ids)
	ended(err)
	return err
}
