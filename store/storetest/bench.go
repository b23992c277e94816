package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"regent/leadership"
	"regent/leadership/service"
)

// Bench measures a Service on the store at 1, 64 and 512 callers: cycles of grant and release, each
// caller on an election of its own, and renewals, of one lease a call. An operation that the store
// was too busy for is counted as "refused/op" and done again.
func Bench(b *testing.B, h Harness, callers ...int) {
	if len(callers) == 0 {
		callers = []int{1, 64, 512}
	}
	for _, n := range callers {
		b.Run(fmt.Sprintf("grant+release/callers=%d", n), func(b *testing.B) {
			bench(b, h, n, func(ctx context.Context, s *service.Service, ask leadership.AcquireRequest, _ leadership.Token) error {
				g, err := s.Acquire(ctx, ask)
				if err != nil {
					return err
				}
				_, err = s.Do(ctx, leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: ask.Election, CandidateID: ask.CandidateID, Key: *ask.Key, Token: g.Token}})
				return err
			})
		})
		b.Run(fmt.Sprintf("renew/callers=%d", n), func(b *testing.B) {
			bench(b, h, n, func(ctx context.Context, s *service.Service, ask leadership.AcquireRequest, token leadership.Token) error {
				_, err := s.Renew(ctx, leadership.LeaseRequest{Election: ask.Election, CandidateID: ask.CandidateID, Key: *ask.Key, Token: token})
				return err
			})
		})
	}
}

func bench(b *testing.B, h Harness, callers int, op func(context.Context, *service.Service, leadership.AcquireRequest, leadership.Token) error) {
	s := service.New(h(b).Open(b))
	asks := make([]leadership.AcquireRequest, callers)
	tokens := make([]leadership.Token, callers)
	key := leadership.NewKey()
	for i := range callers {
		asks[i] = leadership.AcquireRequest{Election: leadership.Election(fmt.Sprintf("e%04d", i)), CandidateID: "ann", Key: &key, LeaseDuration: long}
		g, err := s.Acquire(b.Context(), asks[i])
		if err != nil {
			b.Fatal(err)
		}
		tokens[i] = g.Token
	}
	together(b, callers, func(i, _ int, persist func(func() error) error) error {
		return persist(func() error { return op(b.Context(), s, asks[i], tokens[i]) })
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

// together lets so many callers do b.N operations, which are numbered for each. persist makes a
// call again as often as the store was too busy for it, and counts that.
func together(b *testing.B, callers int, op func(caller, n int, persist func(func() error) error) error) {
	var left, refused atomic.Int64
	left.Store(int64(b.N))
	persist := func(call func() error) error {
		err := call()
		for ; again(err); err = call() {
			refused.Add(1)
		}
		return err
	}
	var wg sync.WaitGroup
	b.ResetTimer()
	for i := range callers {
		wg.Go(func() {
			for n := 1; left.Add(-1) >= 0; n++ {
				if err := op(i, n, persist); err != nil && !errors.Is(err, context.Canceled) {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(refused.Load())/float64(b.N), "refused/op")
}
