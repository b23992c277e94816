package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/wire"
)

// op is what agents and operators ask for.
type op string

const (
	opAcquire   op = "acquire"
	opRenew     op = "renew"
	opRelease   op = "release"
	opCheck     op = "check"
	opConfigure op = "configure"
	opDelete    op = "delete"
)

const (
	outcomeOK      = "ok"
	reasonConflict = "conflict"
)

// Service is the service with its operations counted, its candidates in line and its long polls, and acts under old tokens.
func (m *Metrics) Service(inner httpapi.Service) httpapi.Service {
	if m.idle {
		return inner
	}
	return &service{inner, m}
}

type service struct {
	httpapi.Service
	m *Metrics
}

// operated counts an operation.
func (m *Metrics) operated(ctx context.Context, what op, err error) {
	outcome := outcomeOK
	if err != nil {
		var code leadership.Code
		errors.As(err, &code)
		outcome = lower(wire.MeaningOf(code).Code)
	}
	m.operations.Add(ctx, 1, metric.WithAttributes(attribute.String("op", string(what)), attribute.String("outcome", outcome)))
}

// Acquire implements httpapi.Service.
func (s *service) Acquire(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	if r.Wait > 0 && r.Validate() == nil {
		s.m.waiting.Add(1)
		defer s.m.waiting.Add(-1)
		defer s.m.elections.wait(r.Election)()
	}
	g, err := s.Service.Acquire(ctx, r)
	s.m.operated(ctx, opAcquire, err)
	if refusal, ok := errors.AsType[*leadership.Error](err); ok && refusal.Code == leadership.LeaseHeld && refusal.Reason != "" {
		s.m.contention.Add(ctx, 1, with("reason", lower(refusal.Reason)))
	}
	return g, err
}

// Renew implements httpapi.Service.
func (s *service) Renew(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	l, err := s.Service.Renew(ctx, r)
	s.m.operated(ctx, opRenew, err)
	s.m.acted(ctx, opRenew, r.Token, err)
	return l, err
}

// BatchRenew implements httpapi.Service.
func (s *service) BatchRenew(ctx context.Context, batch []leadership.LeaseRequest) ([]leadership.Result, error) {
	results, err := s.Service.BatchRenew(ctx, batch)
	if err != nil {
		s.m.operated(ctx, opRenew, err)
	}
	for i, r := range results {
		s.m.operated(ctx, opRenew, r.Err)
		s.m.acted(ctx, opRenew, batch[i].Token, r.Err)
	}
	return results, err
}

// Release implements httpapi.Service. A late one does no harm.
func (s *service) Release(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	l, err := s.Service.Release(ctx, r)
	s.m.operated(ctx, opRelease, err)
	return l, err
}

// CheckToken implements httpapi.Service.
func (s *service) CheckToken(ctx context.Context, r leadership.TokenCheck) (leadership.Lease, error) {
	l, err := s.Service.CheckToken(ctx, r)
	s.m.operated(ctx, opCheck, err)
	s.m.acted(ctx, opCheck, r.Token, err)
	return l, err
}

// BatchCheckTokens implements httpapi.Service.
func (s *service) BatchCheckTokens(ctx context.Context, batch []leadership.TokenCheck) ([]leadership.Result, error) {
	results, err := s.Service.BatchCheckTokens(ctx, batch)
	if err != nil {
		s.m.operated(ctx, opCheck, err)
	}
	for i, r := range results {
		s.m.operated(ctx, opCheck, r.Err)
		s.m.acted(ctx, opCheck, batch[i].Token, r.Err)
	}
	return results, err
}

// Configure implements httpapi.Service.
func (s *service) Configure(ctx context.Context, r leadership.ConfigureRequest) (leadership.Lease, error) {
	l, err := s.Service.Configure(ctx, r)
	s.m.operated(ctx, opConfigure, err)
	return l, err
}

// Delete implements httpapi.Service.
func (s *service) Delete(ctx context.Context, r leadership.DeleteRequest) (leadership.Lease, error) {
	l, err := s.Service.Delete(ctx, r)
	s.m.operated(ctx, opDelete, err)
	return l, err
}

// Await implements httpapi.Service.
func (s *service) Await(ctx context.Context, r leadership.ReadRequest, wait time.Duration) (leadership.Reading, bool, error) {
	s.m.watchers.Add(1)
	defer s.m.watchers.Add(-1)
	return s.Service.Await(ctx, r, wait)
}

// underWay is for how long after a grant an act under the token before it may still be one that a leader sent in time.
const underWay = 5 * time.Second

// acted counts an act under an old token, some time after a newer one was granted.
//
// A leader stops before its lease ends, and nobody is granted the next one earlier. So whoever renews later believes that it leads though
// somebody else does; and whatever is checked later was sent by such a one. A release is no such act: it says that somebody has stopped.
func (m *Metrics) acted(ctx context.Context, what op, token leadership.Token, err error) {
	refusal, ok := errors.AsType[*leadership.Error](err)
	if !ok || refusal.Code != leadership.LeaseLost && refusal.Code != leadership.TokenStale || refusal.Lease == nil {
		return
	}
	now := refusal.Lease
	recent := now.State == leadership.Held && now.ReadAt.Sub(now.AcquiredAt) < underWay
	if token < now.Token && !recent {
		m.splitBrain.Add(ctx, 1, with("op", what))
	}
}
