package client_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
)

// noticeLog records the notices of a client.
type noticeLog struct {
	mu  sync.Mutex
	all []client.Notice // guarded by mu
}

func (l *noticeLog) add(n client.Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, n)
}

// take returns the notices since the last take, once all are there.
func (l *noticeLog) take() (all []client.Notice) {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	all, l.all = l.all, nil
	return all
}

func kinds(all []client.Notice) (kinds []client.NoticeKind) {
	for _, n := range all {
		kinds = append(kinds, n.Kind)
	}
	return kinds
}

// noticing returns a client of the server whose notices are recorded.
func noticing(t *testing.T, server *clienttest.Server, who client.Candidate) (*client.Client, *noticeLog) {
	t.Helper()
	heard := &noticeLog{}
	config := server.Config()
	config.Candidate, config.OnNotice = who, heard.add
	return newClient(t, config), heard
}

// order gives an operator's order about the election that lead leads.
func order(t *testing.T, server *clienttest.Server, c leadership.Order) leadership.Lease {
	t.Helper()
	c.Actor, c.Reason = "olga", "a test"
	by := server.Client(client.Candidate{})
	if c.Kind == leadership.OrderApprove && !c.NewEpoch {
		now, err := by.Get(t.Context(), "reports")
		require.NoError(t, err)
		c.IfRevision = now.Revision
	}
	l, err := by.Do(t.Context(), c.In("reports"))
	if err != nil {
		t.Fatalf("%s: %v", c.Kind, err)
	}
	return l
}

// limit configures the election that lead leads with a policy for terms.
func limit(t *testing.T, server *clienttest.Server, p leadership.TermPolicy) {
	t.Helper()
	_, err := server.Client(client.Candidate{}).Do(t.Context(), leadership.Configure{
		Election: "reports",
		Config:   leadership.Config{LeaseDuration: 30 * time.Second, Term: p},
	})
	require.NoError(t, err)
}

func TestEachChangeOfTheEndOfATermIsNoticedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		c, heard := noticing(t, server, named("ann"))
		l := lead(t, c)
		time.Sleep(time.Minute)
		if got := kinds(heard.take()); got != nil || l.EndsBy() != (client.Ending{}) {
			t.Errorf("notices %v of a term without an end, %+v", got, l.EndsBy())
		}
		order(t, server, leadership.Order{Kind: leadership.OrderPause, For: time.Hour, Mode: leadership.PauseDrain})
		time.Sleep(11 * time.Second)
		got := heard.take()
		if e := l.EndsBy(); e.Because != leadership.EndsDrained || !e.Near || e.Left <= 0 || e.Left > 20*time.Second {
			t.Errorf("the term ends: %+v", e)
		}
		if len(got) != 1 || got[0].Kind != client.NoticeDrained || got[0].Left <= 0 || got[0].Left > 30*time.Second || got[0].Token != 1 || got[0].Election != "reports" {
			t.Errorf("notices %+v", got)
		}
		order(t, server, leadership.Order{Kind: leadership.OrderResume})
		time.Sleep(time.Minute)
		if got := kinds(heard.take()); !slices.Equal(got, []client.NoticeKind{client.NoticeGoesOn}) {
			t.Errorf("after the pause, notices %v", got)
		}
		requireValid(t, []*client.Lease{l})
		order(t, server, leadership.Order{Kind: leadership.OrderEvict, Token: 1})
		<-l.Context().Done()
		var ended *client.TermError
		if cause := context.Cause(l.Context()); !errors.Is(cause, client.ErrExpired) || !errors.As(cause, &ended) || ended.Because != leadership.EndsEvicted {
			t.Errorf("an evicted leader ended because: %v", cause)
		}
		if got := kinds(heard.take()); !slices.Equal(got, []client.NoticeKind{client.NoticeEvicted}) {
			t.Errorf("at the end, notices %v", got)
		}
		l.Resign(t.Context())
	})
}

func TestANoticeThatBlocksDelaysNoRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		limit(t, server, leadership.TermPolicy{MaxTerm: time.Hour})
		config := server.Config()
		config.Candidate = named("ann")
		release := make(chan bool)
		heard := &noticeLog{}
		config.OnNotice = func(n client.Notice) {
			<-release
			heard.add(n)
		}
		c := newClient(t, config)
		l := lead(t, c)
		time.Sleep(20 * time.Minute)
		order(t, server, leadership.Order{Kind: leadership.OrderPause, For: time.Hour, Mode: leadership.PauseDrain})
		time.Sleep(15 * time.Second)
		requireValid(t, []*client.Lease{l})
		close(release)
		if got, want := kinds(heard.take()), []client.NoticeKind{client.NoticeMaxTerm, client.NoticeDrained}; !slices.Equal(got, want) {
			t.Errorf("notices %v, want %v", got, want)
		}
		l.Resign(t.Context())
	})
}

func TestALeaderWhoseTermHasRunOutDoesNotEscapeThePolicyByARelease(t *testing.T) {
	for name, p := range map[string]leadership.TermPolicy{
		"stuck":    {StuckAfter: 5 * time.Minute, Cooldown: time.Hour},
		"approval": {Approval: leadership.ApprovalPolicy{Every: 5 * time.Minute, Need: 1}},
	} {
		for _, how := range []string{"Run", "Resign", "LetEnd"} {
			t.Run(name+" "+how, func(t *testing.T) {
				bubble(t, func(t *testing.T, server *clienttest.Server) {
					limit(t, server, p)
					c := server.Client(named("ann"))
					switch how {
					case "Run":
						c.Run(t.Context(), "reports", func(ctx context.Context, _ *client.Lease) error {
							<-ctx.Done()
							return nil
						})
					case "Resign":
						l := lead(t, c)
						<-l.Context().Done()
						l.Resign(t.Context())
					case "LetEnd":
						l := lead(t, c)
						for !l.EndsBy().MustRunOut() {
							time.Sleep(time.Second)
						}
						l.LetEnd()
					}
					time.Sleep(time.Minute)
					_, err := c.TryAcquire(t.Context(), "reports")
					if refusal, ok := errors.AsType[*leadership.Error](err); !ok || refusal.Cause == nil {
						t.Errorf("it is granted the lease again: %v", err)
					}
				})
			})
		}
	}
}

func TestALeaderWithoutProgressIsToldAndProgressAtTheLastMomentSavesItsTerm(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		limit(t, server, leadership.TermPolicy{StuckAfter: 2 * time.Minute})
		c, heard := noticing(t, server, named("ann"))
		l := lead(t, c)
		next := func() (all []client.Notice) {
			for ; all == nil; all = heard.take() {
				time.Sleep(100 * time.Millisecond)
			}
			return all
		}
		for progress := int64(1); progress <= 5; progress++ {
			if got := next(); len(got) != 1 || got[0].Kind != client.NoticeStuck || got[0].Left > 30*time.Second {
				t.Errorf("notices %+v to a leader without progress", got)
			}
			// with the next renewal, although the last one may have had a report
			require.NoError(t, l.Report(client.Report{Progress: progress, Tasks: progress}))
			next()
			if e := l.EndsBy(); !l.Valid() || e.Near || e.Left < time.Minute {
				t.Fatalf("after progress %d the term ends: %+v", progress, e)
			}
		}
		<-l.Context().Done()
		var ended *client.TermError
		if cause := context.Cause(l.Context()); !errors.As(cause, &ended) || ended.Because != leadership.EndsStuck || !strings.Contains(cause.Error(), "no progress") {
			t.Errorf("it ended because: %v", cause)
		}
		l.Resign(t.Context())
	})
}

func TestADeposedLeaderStopsAtOnceAndSaysWhy(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		limit(t, server, leadership.TermPolicy{Budget: leadership.Counters{TokensUsed: 1000}, Cooldown: time.Hour})
		c, heard := noticing(t, server, named("ann"))
		err := c.Run(t.Context(), "reports", func(ctx context.Context, l *client.Lease) error {
			assert.NoError(t, l.Report(client.Report{TokensUsed: 1001}))
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, client.ErrDeposed) || !errors.Is(err, client.ErrLost) || !strings.Contains(err.Error(), "tokensUsed is 1001") {
			t.Errorf("Run returned %v", err)
		}
		if got := kinds(heard.take()); !slices.Equal(got, []client.NoticeKind{client.NoticeTripped}) {
			t.Errorf("notices %v", got)
		}
	})
}

func TestALeaderStepsDownWithAReason(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		ann := server.Client(named("ann"))
		l := lead(t, ann)
		for _, bad := range []struct {
			reason  string
			absence time.Duration
		}{{"", 0}, {strings.Repeat("x", 257), 0}, {"fine", time.Millisecond}, {"fine", 31 * 24 * time.Hour}} {
			if err := l.StepDown(t.Context(), bad.reason, bad.absence); !errors.Is(err, leadership.InvalidArgument) || !l.Valid() {
				t.Fatalf("%.10q for %v: %v, valid: %v", bad.reason, bad.absence, err, l.Valid())
			}
		}
		require.NoError(t, l.StepDown(t.Context(), "the disk is full", time.Hour))
		if !errors.Is(context.Cause(l.Context()), client.ErrResigned) || l.Resign(t.Context()) != nil {
			t.Errorf("after it has stepped down: %v", context.Cause(l.Context()))
		}
		events, err := ann.Events(t.Context(), leadership.EventsRequest{Election: "reports"})
		if err != nil || len(events) == 0 || events[len(events)-1].Reason != "the disk is full" {
			t.Errorf("events %+v, %v", events, err)
		}
		_, err = ann.TryAcquire(t.Context(), "reports")
		assert.ErrorIs(t, err, leadership.LeaseHeld, "a candidate that has stepped down for an hour is granted")
		lead(t, server.Client(named("bob"))).Resign(t.Context())
	})
}

func TestAReasonThatTheServerRefusesStillReleasesTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		ann := over(t, server, named("ann"), func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, ":stepDown") { // a server of an older version
				return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody}, nil
			}
			return send()
		})
		l := lead(t, ann)
		if err := l.StepDown(t.Context(), "the disk is full", 0); err == nil || !strings.Contains(err.Error(), "released, but without the reason") {
			t.Errorf("got %v", err)
		}
		assert.Empty(t, leader(t, server), "still leads")
	})
}

func TestALeaderAsksForApprovalAndGoesOnWithIt(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		limit(t, server, leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: 10 * time.Minute}})
		c, heard := noticing(t, server, named("ann"))
		l := lead(t, c)
		time.Sleep(time.Minute)
		if got := heard.take(); len(got) != 1 || got[0].Kind != client.NoticeApprovalDue || got[0].Left < 9*time.Minute {
			t.Errorf("notices %+v", got)
		}
		require.NoError(t, l.RequestApproval(t.Context(), "the draft is ready"))
		time.Sleep(7 * time.Minute)
		unnamed := leadership.Order{Election: "reports", Kind: leadership.OrderApprove, Token: 1, Actor: "olga", Reason: "a test"}
		_, err := server.Client(client.Candidate{}).Do(t.Context(), unnamed)
		assert.ErrorIs(t, err, leadership.InvalidArgument, "an approval that could count twice")
		order(t, server, leadership.Order{Kind: leadership.OrderApprove, Token: 1})
		require.NoError(t, l.RequestEpoch(t.Context(), "another task"))
		events, err := c.Events(t.Context(), leadership.EventsRequest{Election: l.Election()})
		if last := events[len(events)-1]; err != nil || last.Reason != "another task" || !last.ReadDetail().NewEpoch || events[len(events)-3].ReadDetail().NewEpoch {
			t.Errorf("the events are %+v, %v", events, err)
		}
		time.Sleep(5 * time.Minute)
		if got := kinds(heard.take()); !slices.Equal(got, []client.NoticeKind{client.NoticeApprovalDue}) {
			t.Errorf("after the approval, notices %v", got)
		}
		requireValid(t, []*client.Lease{l})
		l.Resign(t.Context())
	})
}
