package authz_test

import (
	"context"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace/noop"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authz"
	"regent/httpapi/access/limit"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/telemetry"
	"regent/store/memory"
)

// BenchmarkRenew shows what all gates together cost a renewal.
func BenchmarkRenew(b *testing.B) {
	m, err := telemetry.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())), noop.NewTracerProvider())
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	inst, err := instance.New(instance.Config{Store: memory.New(memory.Config{}), Name: "test", Alone: true, Now: func() time.Duration { return time.Since(start) }})
	if err != nil {
		b.Fatal(err)
	}
	policy, err := authz.ParsePolicy([]byte(policyText), authz.Admitted)
	if err != nil {
		b.Fatal(err)
	}
	limits := func(authn.Principal) limit.Limits { return limit.Limits{Renewals: 1_000_000} }
	rights := authz.NewGate(func() *authz.Policy { return policy }, func(context.Context, authz.Record) {})
	guarded := instance.Guard(inst, limit.New(limit.Config{Limits: limits}), rights, m)
	ctx := byName(b.Context(), "candidate")
	g, err := guarded.Acquire(ctx, leadership.AcquireRequest{Election: "own", CandidateID: "ann", LeaseDuration: leadership.MaxLeaseDuration})
	if err != nil {
		b.Fatal(err)
	}
	r := leadership.LeaseRequest{Election: "own", CandidateID: "ann", Key: g.Key, Token: g.Token}
	for name, renew := range map[string]func(context.Context, leadership.LeaseRequest) (leadership.Lease, error){
		"bare": inst.Renew, "guarded": guarded.Renew,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := renew(ctx, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func byName(ctx context.Context, name string) context.Context {
	return authn.With(ctx, authn.Principal{Issuer: "https://issuer.test", Subject: name, Email: name + "@test"})
}
