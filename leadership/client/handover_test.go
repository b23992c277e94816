package client_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
	"regent/leadership/wire"
)

// waiting campaigns as the candidate, and returns where its lease arrives.
func waiting(t *testing.T, c *client.Client) <-chan *client.Lease {
	granted := make(chan *client.Lease, 1)
	go func() {
		defer close(granted)
		l, err := c.Campaign(t.Context(), "reports")
		if err != nil {
			t.Errorf("the candidate that waits: %v", err)
			return
		}
		granted <- l
	}()
	time.Sleep(3 * time.Second) // it stands in line
	return granted
}

// follower is a client that is told of successions.
func follower(t *testing.T, server *clienttest.Server, id leadership.CandidateID, load func(context.Context, client.Succession) error) *client.Client {
	t.Helper()
	config := server.Config()
	config.Candidate, config.OnSuccession = named(id), load
	return newClient(t, config)
}

// history is the types of the election's events.
func history(t *testing.T, server *clienttest.Server) (types []leadership.EventType) {
	t.Helper()
	events, err := server.Client(client.Candidate{}).Events(t.Context(), leadership.EventsRequest{Election: "reports"})
	require.NoError(t, err)
	for _, e := range events {
		types = append(types, e.Type)
	}
	return types
}

var handedOver = []leadership.EventType{
	leadership.EventAcquired, leadership.EventHandingOver, leadership.EventReady, leadership.EventYielded, leadership.EventReleased, leadership.EventAcquired,
}

// runUntil runs as the candidate until stop is called. stopped is when its function was told to
// stop, and ended when Run returned.
func runUntil(t *testing.T, c *client.Client) (stop context.CancelFunc, stopped, ended <-chan time.Time) {
	ctx, stop := context.WithCancel(t.Context())
	told, over := make(chan time.Time, 1), make(chan time.Time, 1)
	go func() {
		err := c.Run(ctx, "reports", func(ctx context.Context, _ *client.Lease) error {
			<-ctx.Done()
			told <- time.Now()
			return nil
		})
		assert.NoError(t, err, "Run")
		over <- time.Now()
	}()
	time.Sleep(time.Second)
	return stop, told, over
}

func TestARunThatIsStoppedHandsOverIfItCanInTime(t *testing.T) {
	loads := func(context.Context, client.Succession) error { time.Sleep(2 * time.Second); return nil }
	hangs := func(ctx context.Context, _ client.Succession) error { <-ctx.Done(); return ctx.Err() }
	released := []leadership.EventType{leadership.EventAcquired, leadership.EventReleased}
	for name, c := range map[string]struct {
		within         time.Duration
		next           func(context.Context, client.Succession) error // nil if no candidate waits
		cut            bool
		stopped, ended time.Duration // after that, and up to a second more
		history        []leadership.EventType
	}{
		"the successor gets ready":  {0, loads, false, 2 * time.Second, 2 * time.Second, handedOver},
		"it does not":               {0, hangs, false, 3 * time.Second, 3 * time.Second, []leadership.EventType{leadership.EventAcquired, leadership.EventHandingOver, leadership.EventReleased, leadership.EventAcquired}},
		"no candidate waits":        {20 * time.Second, nil, false, 0, 0, released},
		"no hand-over is asked for": {client.NoHandOver, hangs, false, 0, 0, append(released, leadership.EventAcquired)},
		"the server is gone":        {0, nil, true, 3 * time.Second, 8 * time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *clienttest.Server) {
				who := named("ann")
				who.HandOverWithin = c.within
				stop, stopped, ended := runUntil(t, server.Client(who))
				var next <-chan *client.Lease
				if c.next != nil {
					next = waiting(t, follower(t, server, "bob", c.next))
				}
				if c.cut {
					server.Cut()
				}
				began := time.Now()
				stop()
				for _, e := range []struct {
					what string
					at   time.Time
					want time.Duration
				}{{"told to stop", <-stopped, c.stopped}, {"gone", <-ended, c.ended}} {
					if d := e.at.Sub(began); d > e.want+time.Second || d < e.want && !c.cut {
						t.Errorf("the leader was %s after %v, want %v", e.what, d, e.want)
					}
				}
				if next != nil {
					(<-next).Resign(t.Context())
				}
				if c.cut {
					return
				}
				if got := history(t, server); !slices.Equal(got[:len(c.history)], c.history) {
					t.Errorf("the history is %v, want %v", got, c.history)
				}
			})
		})
	}
}

func TestASuccessorThatIsNotReadyInTimeLetsTheLeaderRelease(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		who := named("ann")
		who.HandOverWithin = 20 * time.Second
		first := lead(t, server.Client(who))
		cancelled := make(chan time.Duration, 1)
		next := waiting(t, follower(t, server, "bob", func(ctx context.Context, _ client.Succession) error {
			began := time.Now()
			<-ctx.Done()
			cancelled <- time.Since(began)
			return ctx.Err()
		}))
		began := time.Now()
		// the lease had 27 s left: EndsBy is no sooner than that
		if err := first.HandOver(t.Context(), "bob"); !errors.Is(err, leadership.NotReady) || time.Since(began) > 15*time.Second {
			t.Errorf("HandOver returned %v after %v", err, time.Since(began))
		}
		assert.True(t, first.Valid(), "the leader does not lead any more")
		first.Resign(t.Context())
		second := <-next
		if second == nil || second.Token() != 2 {
			t.Fatalf("the next leader has %+v", second)
		}
		if d := <-cancelled; d > 16*time.Second {
			t.Errorf("what loads was cancelled after %v", d)
		}
		second.Resign(t.Context())
	})
}

// The replies to the three calls of a hand-over are lost, each twice.
func TestALeaseDoesNotWaitForAnOnSuccessionThatIgnoresItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		ignoring, gone := make(chan struct{}), make(chan struct{})
		defer close(gone)
		first := lead(t, server.Client(named("ann")))
		logged, config := logging(server, named("bob"))
		config.OnSuccession = func(context.Context, client.Succession) error { close(ignoring); <-gone; return nil }
		next := waiting(t, newClient(t, config))
		go first.HandOver(t.Context(), "bob")
		<-ignoring
		first.Resign(t.Context())
		released := time.Now()
		second := <-next
		if d := time.Since(released); second.Token() != 2 || d > 2*time.Second || !strings.Contains(logged.String(), "OnSuccession goes on") {
			t.Errorf("token %d after %v; the log says\n%s", second.Token(), d, logged)
		}
		second.Resign(t.Context())
	})
}

func TestAHandOverWhoseRepliesAreLostIsDoneOnce(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		var lost [3]atomic.Int32
		losing := func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			response, err := send()
			for i, suffix := range []string{":handOver", ":ready", ":yield"} {
				if strings.HasSuffix(r.URL.Path, suffix) && lost[i].Add(1) <= 2 {
					return nil, errLostReply
				}
			}
			return response, err
		}
		first := lead(t, over(t, server, named("ann"), losing))
		next := waiting(t, over(t, server, named("bob"), losing))
		require.NoError(t, first.HandOver(t.Context(), ""))
		require.NoError(t, first.Resign(t.Context()))
		second := <-next
		if got := history(t, server); !slices.Equal(got, handedOver) {
			t.Errorf("the history is %v", got)
		}
		for i := range lost {
			if n := lost[i].Load(); n < 3 && i != 1 { // the leader may yield before the successor asks again
				t.Errorf("call %d was made %d times", i, n)
			}
		}
		second.Resign(t.Context())
	})
}

// A renewal that was sent before the yield is answered after it.
func TestALateRenewalDoesNotReviveALeaseThatWasYielded(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		var hold atomic.Bool
		first := lead(t, over(t, server, named("ann"), func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			response, err := send()
			if strings.HasSuffix(r.URL.Path, wire.Renew) && hold.Load() {
				time.Sleep(5 * time.Second)
			}
			return response, err
		}))
		next := waiting(t, server.Client(named("bob")))
		require.NoError(t, first.HandOver(t.Context(), "bob"))
		hold.Store(true)
		for !renewing(first) {
			time.Sleep(time.Second)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first.Resign(ctx)
		for range 30 {
			if first.Valid() || first.Remaining() != 0 || first.Context().Err() == nil {
				t.Fatal("a lease that was yielded is valid")
			}
			time.Sleep(time.Second)
		}
		if second := <-next; second != nil {
			second.Resign(t.Context())
		}
	})
}

// renewing waits until a renewal should be under way.
func renewing(l *client.Lease) bool { return l.Remaining() < l.Duration()*2/3 }

func TestASuccessorThatAnOperatorHasNamedTakesOverEarly(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		var notices atomic.Int32
		config := server.Config()
		config.Candidate = named("ann")
		config.OnNotice = func(n client.Notice) {
			if n.Kind == client.NoticeHandOver {
				notices.Add(1)
			}
		}
		ann := newClient(t, config)
		first := lead(t, ann)
		loaded := make(chan client.Succession, 1)
		next := waiting(t, follower(t, server, "bob", func(_ context.Context, s client.Succession) error { loaded <- s; return nil }))
		_, err := ann.Do(t.Context(), leadership.Order{Election: "reports", Kind: leadership.OrderAssign, CandidateID: "bob", For: time.Hour, Reason: "maintenance", Actor: "olga"})
		require.NoError(t, err)
		if s := <-loaded; s.LeaderID != "ann" {
			t.Errorf("the successor is told %+v", s)
		}
		time.Sleep(15 * time.Second) // the leader renews, and hears of it
		if s := first.Succession(); s.To != "bob" || !s.Ready || notices.Load() != 1 {
			t.Errorf("the leader knows of %+v after %d notices", s, notices.Load())
		}
		first.Resign(t.Context())
		second := <-next
		if second == nil || second.Token() != 2 {
			t.Fatalf("the successor has %+v", second)
		}
		if got := history(t, server); !slices.Contains(got, leadership.EventYielded) {
			t.Errorf("the history is %v", got)
		}
		second.Resign(t.Context())
	})
}

func TestALeaderWithPromotionIsReadyOnceItsHookHasReturned(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		observer := server.Client(client.Candidate{})
		_, err := observer.Do(t.Context(), leadership.Configure{Election: "reports", Config: leadership.Config{LeaseDuration: 30 * time.Second, Promotion: true}})
		require.NoError(t, err)
		check := func(token leadership.Token) error {
			_, err := observer.CheckToken(t.Context(), leadership.TokenCheck{Election: "reports", Token: token, Write: true})
			return err
		}
		config := server.Config()
		config.Candidate = named("ann")
		config.OnPromotion = func(_ context.Context, l *client.Lease) error {
			time.Sleep(time.Minute) // the lease is renewed meanwhile
			assert.ErrorIs(t, check(l.Token()), leadership.NotReady, "before it is ready")
			return nil
		}
		ann := newClient(t, config)
		assert.NoError(t, ann.Run(t.Context(), "reports", func(_ context.Context, l *client.Lease) error { return check(l.Token()) }), "when it leads")
		broken := errors.New("no state")
		config.OnPromotion = func(context.Context, *client.Lease) error { return broken }
		if l, err := newClient(t, config).Campaign(t.Context(), "reports"); !errors.Is(err, broken) || l != nil || leader(t, server) != "" {
			t.Errorf("a leader that cannot be ready: %v, %v; %q leads", l, err, leader(t, server))
		}
		bob := lead(t, server.Client(named("bob")))
		assert.NoError(t, check(bob.Token()), "without a hook")
		bob.Resign(t.Context())
	})
}
