package instance_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/store/memory"
	"regent/store/storetest"
)

// A local store gathers by itself what comes at the same time, and each renewal goes to it at once.
func TestRenewalsGoTogetherToASharedStoreOnly(t *testing.T) {
	t.Parallel()
	const leaders = 16
	for alone, want := range map[bool]int{false: 2, true: leaders} {
		synctest.Test(t, func(t *testing.T) {
			var count storetest.Counter
			slow := &storetest.Fake{Store: memory.New(memory.Config{}), Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
				time.Sleep(50 * time.Millisecond)
				return count.Count(ctx, c, next)
			}}
			i, err := instance.New(instance.Config{Store: slow, Name: "a", Alone: alone})
			require.NoError(t, err)
			var leases []leadership.LeaseRequest
			for n := range leaders {
				e := leadership.Election(fmt.Sprintf("jobs%d", n))
				g, err := i.Acquire(t.Context(), leadership.AcquireRequest{Election: e, CandidateID: "ann"})
				require.NoError(t, err)
				leases = append(leases, leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: g.Key, Token: g.Token})
			}
			count.Take()
			var all sync.WaitGroup
			for _, lease := range leases {
				all.Go(func() {
					if l, err := i.Renew(t.Context(), lease); err != nil || l.Election != lease.Election {
						t.Errorf("%s: %+v, %v", lease.Election, l, err)
					}
				})
			}
			all.Wait()
			if got := count.Take()["Renew"]; got != want {
				t.Errorf("alone %v: %d leaders cost %d calls, want %d", alone, leaders, got, want)
			}
		})
	}
}
