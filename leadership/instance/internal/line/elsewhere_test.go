package line_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
)

const halfMinute = 30 * time.Second

// tells passes the news of what this instance has renewed on to the other, until ctx ends.
func (i *instance) tells(ctx context.Context, other *instance) {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(halfMinute / 2):
				other.hub.RenewedElsewhere(i.hub.RenewedHere()...)
			}
		}
	}()
}

// stands waits for the lease again and again, with one key, until ctx ends.
func (i *instance) stands(ctx context.Context, c leadership.CandidateID) (granted chan leadership.Grant) {
	granted = make(chan leadership.Grant, 1)
	r := keyed(request(c))
	go func() {
		for ctx.Err() == nil {
			if g, err := i.queue.Acquire(ctx, r); err == nil {
				granted <- g
				return
			}
		}
	}()
	return granted
}

// keepsUntil renews the lease until that moment.
func (i *instance) keepsUntil(g leadership.Grant, until time.Time) (last time.Time) {
	for {
		i.renews(g)
		last = time.Now()
		if !last.Add(g.LeaseDuration / 3).Before(until) {
			return last
		}
		time.Sleep(g.LeaseDuration / 3)
	}
}

func TestAnHourOfALeaseThatIsRenewedElsewhereCostsNothingWithNewsOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		news        bool
		least, most int64 // attempts in the hour
	}{
		"with news":    {true, 0, 0},
		"without news": {false, 60, int64(time.Hour / (halfMinute * 2 / 3))},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *cluster) {
				i, other := w.instance(), w.instance()
				leader := i.leadsFor("ann", halfMinute)
				ctx, cancel := context.WithCancel(t.Context())
				granted := other.stands(ctx, "bob")
				synctest.Wait()
				other.wants(1, "as bob joins")
				if c.news {
					i.tells(ctx, other)
				}
				last := i.keepsUntil(leader, time.Now().Add(time.Hour))
				if n := other.called(); n < c.least || n > c.most {
					t.Errorf("the store was asked %d times in an hour, want %d to %d", n, c.least, c.most)
				}
				g := <-granted // the leader has died
				if took := time.Since(last); took < halfMinute || took > halfMinute+time.Second {
					t.Errorf("bob leads %v after the last renewal, want a lease and a second at most", took)
				}
				other.releases(g)
				cancel()
			})
		})
	}
}

func TestAWaiterLeadsWithinALeaseAndASecondWhenLeaderAndInstanceDieTogether(t *testing.T) {
	in(t, func(t *testing.T, w *cluster) {
		i, other := w.instance(latest), w.instance(latest)
		leader := i.leadsFor("ann", halfMinute)
		alive, die := context.WithCancel(t.Context())
		granted := other.stands(t.Context(), "bob")
		i.tells(alive, other)
		last := i.keepsUntil(leader, time.Now().Add(5*time.Minute))
		time.Sleep(halfMinute / 3)
		die()
		<-granted
		if took := time.Since(last); took < halfMinute || took > halfMinute+time.Second {
			t.Errorf("bob leads %v after the last renewal, want a lease and a second at most", took)
		}
		if n := other.called(); n > 3 {
			t.Errorf("the store was asked %d times, want as bob joins, for the end, and for the grant", n)
		}
	})
}
