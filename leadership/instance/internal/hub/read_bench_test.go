package hub_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/view"
)

// names are as many elections.
func names(n int) []leadership.Election {
	all := make([]leadership.Election, n)
	for i := range all {
		all[i] = leadership.Election(fmt.Sprintf("team-%d.jobs", i))
	}
	return all
}

func benched(b *testing.B) *hub.Hub {
	b.Helper()
	h := newHub(b, hub.Config{Expiry: hub.MaxExpiry, Now: boottime.Now, Store: stub{get: func(_ context.Context, e leadership.Election) (leadership.Lease, error) {
		return leadership.Lease{Election: e, State: leadership.Held, Revision: 1, Token: 1, ExpiresIn: time.Hour}, nil
	}}})
	return h
}

// BenchmarkHit measures concurrent reads from the cache: of the same election, and of many.
func BenchmarkHit(b *testing.B) {
	for _, elections := range []int{1, 1000} {
		b.Run(fmt.Sprintf("elections=%d", elections), func(b *testing.B) {
			c, all := benched(b), names(elections)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if _, err := c.Read(b.Context(), leadership.ReadRequest{Election: all[i%elections]}); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// BenchmarkLearnForReaders measures renewals of elections without readers, and of elections in the
// cache.
func BenchmarkLearnForReaders(b *testing.B) {
	for _, kept := range []bool{false, true} {
		b.Run(fmt.Sprintf("kept=%v", kept), func(b *testing.B) {
			c, all := benched(b), names(1000)
			for _, e := range all {
				if !kept {
					continue
				}
				if _, err := c.Read(b.Context(), leadership.ReadRequest{Election: e}); err != nil {
					b.Fatal(err)
				}
			}
			asked := boottime.Now()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					c.Learn(leadership.Lease{Election: all[i%len(all)], State: leadership.Held, Revision: 1, ExpiresIn: time.Hour}, view.Read, asked)
				}
			})
		})
	}
}
