package instance_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/store/memory"
	"regent/store/storetest"
)

// burdened is an instance whose store takes so long for a renewal.
type burdened struct {
	*testing.T
	*instance.Instance
	takes atomic.Int64
}

func newBurdened(t *testing.T) *burdened {
	t.Helper()
	b := &burdened{T: t}
	slow := &storetest.Fake{Store: memory.New(memory.Config{}), Around: func(ctx context.Context, _ storetest.Call, next func(context.Context) error) error {
		err := next(ctx)
		time.Sleep(time.Duration(b.takes.Load()))
		return err
	}}
	begin := time.Now()
	var err error
	if b.Instance, err = instance.New(instance.Config{Store: slow, Now: func() time.Duration { return time.Since(begin) }}); err != nil {
		t.Fatal(err)
	}
	return b
}

// leads makes a candidate lead an election.
func (b *burdened) leads(e leadership.Election) (leadership.LeaseRequest, leadership.Lease) {
	b.Helper()
	g, err := b.Acquire(b.Context(), leadership.AcquireRequest{Election: e, CandidateID: "ann", LeaseDuration: time.Minute})
	require.NoError(b, err)
	return leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: g.Key, Token: g.Token}, g.Lease
}

// renews renews the lease so often.
func (b *burdened) renews(n int, r leadership.LeaseRequest) (l leadership.Lease) {
	b.Helper()
	for range n {
		var err error
		if l, err = b.Renew(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	return l
}

func TestLeadersRenewLessOftenUnderLoadAndNeverLaterThanHalfOfTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBurdened(t)
		lease, granted := b.leads("jobs")
		b.takes.Store(int64(400 * time.Millisecond)) // a distant store is no load
		l := b.renews(50, lease)
		if b.Stretch() != 0 || granted.RenewIn != 20*time.Second || l.RenewIn != 20*time.Second {
			t.Errorf("without load it is renewed in %v and %v, want a third of a minute", granted.RenewIn, l.RenewIn)
		}
		b.takes.Store(int64(3 * time.Second))
		before := l.RenewIn
		for range 15 {
			l = b.renews(1, lease)
			if l.RenewIn < before || l.RenewIn > 30*time.Second {
				t.Errorf("it is renewed in %v, after %v", l.RenewIn, before)
			}
			before = l.RenewIn
		}
		if b.Stretch() != 1 || l.RenewIn != 30*time.Second {
			t.Errorf("under full load it is renewed in %v, want half of a minute", l.RenewIn)
		}
		results, err := b.BatchRenew(t.Context(), []leadership.LeaseRequest{lease})
		if err != nil || results[0].Lease.RenewIn != 30*time.Second {
			t.Errorf("got %+v, %v; want half of a minute in a batch", results, err)
		}
		if _, granted = b.leads("more"); granted.RenewIn != 30*time.Second {
			t.Errorf("a lease that is granted under load is renewed in %v, want half of a minute", granted.RenewIn)
		}
		b.takes.Store(0)
		if l = b.renews(50, lease); b.Stretch() != 0 || l.RenewIn != 20*time.Second {
			t.Errorf("the load is over, and it is renewed in %v", l.RenewIn)
		}
	})
}
