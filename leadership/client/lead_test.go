package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
	"regent/leadership/wire"
)

// bubble runs a test with a server in a synctest bubble.
func bubble(t *testing.T, test func(*testing.T, *clienttest.Server)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, clienttest.New(t)) })
}

func lead(t *testing.T, c *client.Client) *client.Lease {
	t.Helper()
	l, err := c.Campaign(t.Context(), "reports")
	require.NoError(t, err)
	return l
}

func leader(t *testing.T, s *clienttest.Server) leadership.CandidateID {
	t.Helper()
	l, err := s.Client(client.Candidate{}).Get(t.Context(), "reports")
	require.NoError(t, err)
	return l.LeaderID
}

func named(id leadership.CandidateID) client.Candidate {
	return client.Candidate{ID: id, LeaseDuration: 30 * time.Second}
}

func TestALeaseIsGivenBackOnlyAfterTheFunctionHasReturned(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		ctx, stop := context.WithCancel(t.Context())
		var returned time.Time
		go func() {
			time.Sleep(time.Hour)
			stop()
		}()
		next := make(chan time.Time, 1)
		run := func() error {
			return server.Client(named("ann")).Run(ctx, "reports", func(ctx context.Context, l *client.Lease) error {
				go func() {
					l := lead(t, server.Client(named("bob")))
					next <- time.Now()
					l.Resign(t.Context())
				}()
				<-ctx.Done()
				time.Sleep(10 * time.Second) // takes some time to stop
				assert.False(t, l.Valid(), "a lease that is not renewed is still valid")
				returned = time.Now()
				return nil
			})
		}
		assert.NoError(t, run(), "a leader that was asked to stop, and did, failed")
		if led := <-next; led.Before(returned) || led.Sub(returned) > time.Second {
			t.Errorf("the next leader leads %v after the function returned", led.Sub(returned))
		}
	})
}

func TestAFunctionThatDoesNotReturnLetsTheLeaseRunOutAndIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		defer time.Sleep(time.Hour) // until the next leader is done too
		ctx, stop := context.WithCancel(t.Context())
		logged, config := logging(server, named("ann"))
		c := newClient(t, config)
		err := c.Run(ctx, "reports", func(ctx context.Context, l *client.Lease) error {
			stop()
			second := lead(t, server.Client(named("bob")))
			assert.EqualValues(t, 2, second.Token(), "the next leader has token")
			time.AfterFunc(time.Minute, func() { second.Resign(t.Context()) })
			time.Sleep(time.Second)
			return nil
		})
		assert.ErrorIs(t, err, client.ErrOverran, "Run")
		if got := leader(t, server); got != "bob" {
			t.Errorf("after the late release %q leads", got)
		}
		if n := strings.Count(logged.String(), "has not returned"); n != 1 {
			t.Errorf("it was said %d times that the function has not returned:\n%s", n, logged)
		}
	})
}

func TestAFunctionThatPanicsLeavesTheLeaseToRunOut(t *testing.T) {
	broken := func(context.Context, *client.Lease) error { panic("broken") }
	for name, c := range map[string]struct {
		promote, lead func(context.Context, *client.Lease) error
	}{
		"Run's": {nil, broken}, "OnPromotion": {broken, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *clienttest.Server) {
				_, err := server.Client(client.Candidate{}).Do(t.Context(), leadership.Configure{Election: "reports", Config: leadership.Config{LeaseDuration: 30 * time.Second, Promotion: true}})
				require.NoError(t, err)
				config := server.Config()
				config.Candidate, config.OnPromotion = named("ann"), c.promote
				func() {
					defer func() {
						if got := recover(); got != "broken" {
							t.Errorf("recovered %v", got)
						}
					}()
					_ = newClient(t, config).Run(t.Context(), "reports", c.lead)
				}()
				time.Sleep(20 * time.Second)
				assert.EqualValues(t, "ann", leader(t, server), "leads while the lease runs")
				time.Sleep(11 * time.Second)
				assert.Empty(t, leader(t, server), "leads after the lease has run out")
			})
		})
	}
}

func TestWhatRunReturnsSaysWhyTheLeadershipEnded(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name string
		lead func(context.Context, *clienttest.Server) error
		want []error // nil for no error
		not  []error
	}{
		{"it is done", func(context.Context, *clienttest.Server) error { return nil }, nil, nil},
		{"it failed", func(context.Context, *clienttest.Server) error { return broken }, []error{broken}, []error{client.ErrLost, client.ErrResigned}},
		{
			"it was cut off", func(ctx context.Context, s *clienttest.Server) error { s.Cut(); <-ctx.Done(); return ctx.Err() },
			[]error{client.ErrExpired, leadership.StoreUnavailable},
			[]error{context.Canceled, client.ErrOverran},
		},
		{
			"it was cut off, and failed", func(ctx context.Context, s *clienttest.Server) error {
				s.Cut()
				<-ctx.Done()
				return errors.Join(ctx.Err(), broken)
			},
			[]error{client.ErrExpired, broken},
			nil,
		},
		{
			"it was overruled", func(ctx context.Context, s *clienttest.Server) error { overrule(ctx, s); <-ctx.Done(); return nil },
			[]error{client.ErrLost, leadership.LeaseLost},
			[]error{client.ErrExpired, client.ErrOverran},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *clienttest.Server) {
				err := server.Client(named("ann")).Run(t.Context(), "reports", func(ctx context.Context, _ *client.Lease) error { return c.lead(ctx, server) })
				if (err != nil) != (c.want != nil) {
					t.Errorf("Run returned %v", err)
				}
				for _, want := range c.want {
					if !errors.Is(err, want) {
						t.Errorf("Run returned %v, which is not %v", err, want)
					}
				}
				for _, not := range c.not {
					if errors.Is(err, not) {
						t.Errorf("Run returned %v, which should not be %v", err, not)
					}
				}
			})
		})
	}
}

// overrule deletes the election, as an operator may.
func overrule(ctx context.Context, s *clienttest.Server) {
	_, err := s.Client(client.Candidate{}).Do(ctx, leadership.Delete{
		Election: "reports", Force: true,
	})
	if err != nil {
		panic(err)
	}
}

func TestALeaderThatIsOverruledStopsAtItsNextRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		l := lead(t, server.Client(named("ann")))
		time.Sleep(time.Minute)
		overrule(t.Context(), server)
		began := time.Now()
		<-l.Context().Done()
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("it stopped after %v", d)
		}
		assert.NoError(t, l.Resign(t.Context()), "to resign from a lost lease")
		if cause := context.Cause(l.Context()); !errors.Is(cause, client.ErrLost) {
			t.Errorf("the cause is %v", cause)
		}
	})
}

// A leader that renews every third of a lease has two thirds of it, less the margin, left when a
// renewal first fails.
func TestLostServerStopsALeaderAtItsDeadlineAndNotBefore(t *testing.T) {
	for _, c := range []struct {
		name  string
		cut   time.Duration
		ends  error
		lines []string
	}{
		{"for less than the lease", 17 * time.Second, nil, []string{
			"level=INFO msg=leading",
			`level=WARN msg="the lease could not be renewed; trying until the deadline"`,
			`level=INFO msg="renewed again"`,
			"level=INFO msg=resigned",
		}},
		{"for longer", time.Minute, client.ErrExpired, []string{
			"level=INFO msg=leading",
			`level=WARN msg="the lease could not be renewed; trying until the deadline"`,
			`level=ERROR msg="no longer leader"`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *clienttest.Server) {
				log, config := logging(server, named("ann"))
				agent := newClient(t, config)
				stop, resign := context.WithTimeout(t.Context(), 3*time.Minute)
				defer resign()
				err := agent.Run(stop, "reports", func(ctx context.Context, _ *client.Lease) error {
					time.Sleep(47 * time.Second)
					l, err := server.Client(client.Candidate{}).Get(t.Context(), "reports")
					end := time.Now().Add(l.ExpiresIn) // by the store's clock
					server.Cut()
					time.AfterFunc(c.cut, server.Heal)
					<-ctx.Done()
					if c.ends != nil && !time.Now().Before(end) {
						t.Errorf("the leader stopped %v after its lease's end", time.Since(end))
					}
					return err
				})
				assert.ErrorIs(t, err, c.ends, "Run")
				requireLines(t, log.String(), c.lines)
			})
		})
	}
}

// requireLines requires that the log has exactly these lines, and warnings their reason.
func requireLines(t *testing.T, log string, want []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(log), "\n")
	if len(lines) != len(want) {
		t.Fatalf("the log has %d lines, want %d:\n%s", len(lines), len(want), log)
	}
	for i, line := range lines {
		reasoned := strings.Contains(want[i], "INFO") || strings.Contains(line, "reason=")
		if !strings.HasPrefix(line, want[i]) || !strings.Contains(line, "election=reports candidate=ann") || !reasoned {
			t.Errorf("the log says\n%s\nwant %s", line, want[i])
		}
	}
}

func logging(server *clienttest.Server, who client.Candidate) (*bytes.Buffer, client.Config) {
	var b bytes.Buffer
	config := server.Config()
	config.Candidate = who
	config.Log = slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	return &b, config
}

// through returns a client whose requests go through trip.
func through(c *http.Client, trip func(*http.Request, func() (*http.Response, error)) (*http.Response, error)) *http.Client {
	return &http.Client{Transport: apitest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		return trip(r, func() (*http.Response, error) { return c.Transport.RoundTrip(r) })
	})}
}

// over returns a client whose requests go through trip.
func over(t *testing.T, server *clienttest.Server, who client.Candidate, trip func(*http.Request, func() (*http.Response, error)) (*http.Response, error)) *client.Client {
	t.Helper()
	config := server.Config()
	config.Candidate = who
	config.HTTP = through(config.HTTP, trip)
	return newClient(t, config)
}

var errLostReply = errors.New("the reply is lost")

// losing is a trip that loses the first n replies to calls of that suffix.
func losing(suffix string, n int) func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
	return func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		response, err := send()
		if strings.HasSuffix(r.URL.Path, suffix) && n > 0 {
			n--
			return nil, errLostReply
		}
		return response, err
	}
}

func TestRetriedRenewalUsesAnotherConnection(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		var dead atomic.Bool
		agent := over(t, server, named("ann"), func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if dead.Load() {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return send()
		})
		agent.Spare(server.Config().HTTP.Transport)
		l := lead(t, agent)
		dead.Store(true)
		time.Sleep(time.Hour)
		if !l.Valid() {
			t.Errorf("the lease was lost with a connection: %v", context.Cause(l.Context()))
		}
		dead.Store(false)
		l.Resign(t.Context())
	})
}

// stalled is a log whose reader has stopped.
type stalled struct {
	slog.Handler
	full chan struct{}
}

func (s stalled) Handle(_ context.Context, r slog.Record) error {
	if r.Level > slog.LevelInfo {
		<-s.full
	}
	return nil
}

func TestBlockedLogDoesNotKeepALeaderFromStopping(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		full := make(chan struct{})
		config := server.Config()
		config.Candidate, config.Log = named("ann"), slog.New(stalled{slog.NewTextHandler(io.Discard, nil), full})
		agent := newClient(t, config)
		l := lead(t, agent)
		server.Cut()
		began := time.Now()
		<-l.Context().Done()
		if d := time.Since(began); d > 29*time.Second || l.Valid() || l.Deadline() == 0 {
			t.Errorf("the leader stopped after %v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Resign(ctx); err == nil {
			t.Error("the lease was given back to a server that is cut off")
		}
		close(full)
	})
}

func TestImpossibleLeaseInARenewalIsNotBelieved(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		var renewals atomic.Int64
		agent := over(t, server, named("ann"), func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			response, err := send()
			if err == nil && strings.HasSuffix(r.URL.Path, wire.Renew) {
				renewals.Add(1)
				body, _ := io.ReadAll(response.Body)
				text := regexp.MustCompile(`"expiresInMs":\d+`).ReplaceAllString(string(body), `"expiresInMs":3000000`)
				text = regexp.MustCompile(`"renewInMs":\d+`).ReplaceAllString(text, `"renewInMs":0`)
				response.Body = io.NopCloser(strings.NewReader(text))
			}
			return response, err
		})
		l := lead(t, agent)
		time.Sleep(time.Minute)
		if left := l.Remaining(); left > 30*time.Second {
			t.Errorf("a lease of 30s is believed in for %v", left)
		}
		if n := renewals.Load(); n == 0 || n > 2000 {
			t.Errorf("it was renewed %d times in a minute", n)
		}
		l.Resign(t.Context())
	})
}

func TestOnlyAnAnswerMovesTheDeadlineOn(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		began := time.Now()
		l := lead(t, over(t, server, named("ann"), losing(wire.Renew, 1000)))
		deadline := l.Deadline()
		select {
		case <-l.Context().Done():
		case <-time.After(time.Minute): // it keeps leading until it resigns
		}
		if d := time.Since(began); d > 29*time.Second || l.Deadline() != deadline {
			t.Errorf("the leader stopped after %v, and its deadline moved by %v", d, l.Deadline()-deadline)
		}
		assert.EqualValues(t, "ann", leader(t, server), "leads; the store has renewed the lease")
		if err := l.Resign(t.Context()); err != nil || leader(t, server) != "" {
			t.Errorf("the lease was not given back: %v", err)
		}
	})
}
