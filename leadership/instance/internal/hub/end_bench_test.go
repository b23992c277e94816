package hub_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/view"
)

// busy is a lookout that runs and keeps the leases of as many elections in mind.
func busy(b *testing.B, leases int) (*hub.Hub, []leadership.Lease) {
	b.Helper()
	l := newHub(b, hub.Config{Store: stub{expire: func(context.Context, leadership.Election) (leadership.Lease, error) {
		return leadership.Lease{}, nil
	}}})
	all := make([]leadership.Lease, leases)
	for i := range all {
		all[i] = leadership.Lease{Election: leadership.Election(fmt.Sprintf("team-%d.jobs", i)), State: leadership.Held, Revision: 1, ExpiresIn: 30 * time.Second}
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx)
	}()
	b.Cleanup(func() { cancel(); <-done })
	return l, all
}

// BenchmarkLearn is renewals of 100,000 leases, by all at once.
func BenchmarkLearn(b *testing.B) {
	l, all := busy(b, 100_000)
	for _, lease := range all {
		l.Learn(lease, view.Committed, 0)
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			l.Learn(all[i%len(all)], view.Committed, 0)
		}
	})
}

// BenchmarkGrant is a grant and its release, and reports what a lease that is kept in mind takes of
// memory, without its name.
func BenchmarkGrant(b *testing.B) {
	l, all := busy(b, 100_000)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for _, lease := range all {
		l.Learn(lease, view.Committed, 0)
	}
	size := float64(heap()-before) / float64(len(all))
	for i := 0; b.Loop(); i++ {
		lease := all[i%len(all)]
		lease.State, lease.Revision = leadership.Vacant, leadership.Revision(2*i+2)
		l.Learn(lease, view.Committed, 0)
		lease.State, lease.Revision = leadership.Held, leadership.Revision(2*i+3)
		l.Learn(lease, view.Committed, 0)
	}
	b.ReportMetric(size, "B/lease")
}
