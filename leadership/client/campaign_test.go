package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/client/clienttest"
	"regent/leadership/wire"
)

func TestACampaignWhoseRepliesAreLostIsGrantedOneLease(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		agent := over(t, server, named("ann"), losing(wire.Acquire, 5))
		l := lead(t, agent)
		if l.Token() != 1 || l.Remaining() < 28*time.Second {
			t.Errorf("token %d, %v left", l.Token(), l.Remaining())
		}
		events, err := agent.Events(t.Context(), leadership.EventsRequest{Election: "reports"})
		if err != nil || len(events) != 1 {
			t.Errorf("events %v, %v; want one", events, err)
		}
		l.Resign(t.Context())
	})
}

func TestCancelledCampaignLeavesNoLease(t *testing.T) {
	for _, failing := range []int{0, 3} { // reads
		t.Run(fmt.Sprint(failing, " reads fail"), func(t *testing.T) {
			bubble(t, func(t *testing.T, server *clienttest.Server) {
				ctx, stop := context.WithCancel(t.Context())
				agent := over(t, server, named("ann"), func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
					if r.Method == http.MethodGet {
						if failing--; failing >= 0 {
							return nil, errLostReply
						}
					}
					response, err := send()
					if strings.HasSuffix(r.URL.Path, wire.Acquire) {
						stop()
						return nil, errLostReply
					}
					return response, err
				})
				if l, err := agent.Campaign(ctx, "reports"); !errors.Is(err, context.Canceled) || l != nil {
					t.Errorf("Campaign returned %v", err)
				}
				assert.Empty(t, leader(t, server), "leads, and does not know it")
			})
		})
	}
}

func TestCancelledCampaignLeavesNoSeat(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		ctx, stop := context.WithCancel(t.Context())
		agent := over(t, server, named("ann"), func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			response, err := send()
			if strings.HasSuffix(r.URL.Path, wire.Acquire) {
				stop()
				return nil, errLostReply
			}
			return response, err
		})
		_, err := agent.Do(t.Context(), leadership.Configure{Election: "gpu", Config: leadership.Config{Seats: 3}})
		require.NoError(t, err)
		if l, err := agent.Campaign(ctx, "gpu"); !errors.Is(err, context.Canceled) || l != nil {
			t.Errorf("Campaign returned %v", err)
		}
		granted := 0
		for n := range 3 {
			l, err := agent.Get(t.Context(), leadership.Election("gpu").Seat(n+1))
			if err != nil || l.State == leadership.Held {
				t.Errorf("%+v, %v; want it vacant", l, err)
			}
			granted += int(l.Token)
		}
		assert.EqualValues(t, 1, granted, "seats were granted")
	})
}

func TestGrantThatArrivesTooLateIsAnErrorAndIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		late := client.Candidate{ID: "ann", LeaseDuration: time.Second, Rounds: 2}
		agent := over(t, server, late, func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			response, err := send()
			if strings.HasSuffix(r.URL.Path, wire.Acquire) {
				time.Sleep(950 * time.Millisecond)
			}
			return response, err
		})
		for name, campaign := range map[string]func(context.Context, leadership.Election) (*client.Lease, error){
			"Campaign": agent.Campaign, "TryAcquire": agent.TryAcquire,
		} {
			if l, err := campaign(t.Context(), "reports"); l != nil || !errors.Is(err, leadership.OutcomeUnknown) {
				t.Errorf("%s returned %v, %v", name, l, err)
			}
			assert.Empty(t, leader(t, server), "%s: was left with the lease", name)
		}
		err := agent.Run(t.Context(), "reports", func(context.Context, *client.Lease) error { t.Error("the function ran without a lease"); return nil })
		assert.ErrorIs(t, err, leadership.OutcomeUnknown, "Run")
	})
}

func TestCampaignCancelledDuringItsRequestLeavesNoLease(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		ctx, stop := context.WithCancel(t.Context())
		arrived := make(chan struct{})
		agent := over(t, server, named("ann"), func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, wire.Acquire) {
				return send()
			}
			stop()
			go func() {
				defer close(arrived)
				time.Sleep(2 * time.Second)
				late := r.Clone(context.Background())
				late.Body, _ = r.GetBody()
				response, err := server.Config().HTTP.Transport.RoundTrip(late)
				if err == nil {
					response.Body.Close()
				}
			}()
			return nil, errLostReply
		})
		_, err := agent.Campaign(ctx, "reports")
		assert.ErrorIs(t, err, context.Canceled, "Campaign")
		<-arrived
		assert.Empty(t, leader(t, server), "leads, and does not know it")
	})
}

func TestReplyAfterTheDeadlineDoesNotMakeALeader(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		slow := true
		agent := over(t, server, named("ann"), func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			response, err := send()
			if strings.HasSuffix(r.URL.Path, wire.Acquire) && slow {
				slow = false
				time.Sleep(29 * time.Second)
			}
			return response, err
		})
		l := lead(t, agent)
		if l.Token() != 1 || l.Remaining() < 28*time.Second {
			t.Errorf("token %d with %v left; want a lease that was asked for again", l.Token(), l.Remaining())
		}
		l.Resign(t.Context())
	})
}

// A call that finds its own lease, of an earlier call, renews it; on a slow store it can be over
// then. And the peer that a call names may not answer.
func TestACampaignAsksAgainAfterARefusalThatPasses(t *testing.T) {
	for refusal, least := range map[string]time.Duration{`"code":"LEASE_LOST"`: 0, `"code":"NOT_ELIGIBLE","retryAfterMs":1000`: 2 * time.Second} {
		t.Run(refusal, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *clienttest.Server) {
				asked := 0
				c := over(t, server, named("ann"), func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
					if !strings.HasSuffix(r.URL.Path, wire.Acquire) {
						return send()
					}
					if asked++; asked > 2 {
						return send()
					}
					body := `{"type":"about:blank","title":"No","status":409,"detail":"no",` + refusal + `}`
					return &http.Response{
						StatusCode: http.StatusConflict, Header: http.Header{"Content-Type": {"application/problem+json"}}, Body: io.NopCloser(strings.NewReader(body)),
					}, nil
				})
				began := time.Now()
				defer lead(t, c).Resign(t.Context())
				if d := time.Since(began); asked != 3 || d < least || d > 10*time.Second {
					t.Errorf("it asked %d times within %v", asked, d)
				}
			})
		})
	}
}

func TestCampaignEndsWithAPermanentError(t *testing.T) {
	for _, c := range []struct {
		name     string
		who      client.Candidate
		election leadership.Election
		cut      bool
		want     error
		within   time.Duration
	}{
		{"a name that is none", named("ann"), "No Name", false, leadership.InvalidArgument, 0},
		{"a candidate that is none", named("a b"), "reports", false, leadership.InvalidArgument, 0},
		{"a margin of the whole lease", client.Candidate{Margin: time.Second, LeaseDuration: time.Second}, "reports", false, leadership.InvalidArgument, 0},
		{"a margin of the configured lease", client.Candidate{Margin: 30 * time.Second}, "reports", false, leadership.InvalidArgument, 0},
		{"a margin below nothing", client.Candidate{Margin: -1}, "reports", false, leadership.InvalidArgument, 0},
		{"a capability that is none", client.Candidate{Capabilities: []string{"gpu", "a b"}}, "reports", false, leadership.InvalidArgument, 0},
		{"rounds below nothing", client.Candidate{Rounds: -1}, "reports", false, leadership.InvalidArgument, 0},
		{"metadata that are none", client.Candidate{Metadata: []byte("[]")}, "reports", false, leadership.InvalidArgument, 0},
		{"as often as it was to ask", client.Candidate{Rounds: 4}, "reports", true, leadership.StoreUnavailable, 10 * time.Second},
		{"another candidate leads all the time", client.Candidate{Rounds: 2}, "taken", false, leadership.LeaseHeld, 121 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *clienttest.Server) {
				taken, err := server.Client(named("cy")).Campaign(t.Context(), "taken")
				require.NoError(t, err)
				defer taken.Resign(t.Context())
				if c.cut {
					server.Cut()
				}
				began := time.Now()
				_, err = server.Client(c.who).Campaign(t.Context(), c.election)
				assert.ErrorIs(t, err, c.want, "Campaign")
				if d := time.Since(began); d > c.within {
					t.Errorf("it took %v", d)
				}
				server.Heal()
				if got, err := server.Client(client.Candidate{}).Get(t.Context(), "reports"); err == nil && got.LeaderID != "" {
					t.Errorf("%q was left with the lease", got.LeaderID)
				}
			})
		})
	}
}

func TestServerThatAnswersEarlyIsNotCalledInALoopByCampaign(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := &scriptedServer{acts: []http.HandlerFunc{problem(http.StatusConflict, string(leadership.LeaseHeld))}}
		_, err := s.client(t).Campaign(ctx, "reports")
		assert.ErrorIs(t, err, context.DeadlineExceeded, "Campaign")
		if n := len(s.pauses()); n > 30 {
			t.Errorf("it asked %d times in a minute", n)
		}
		for i, d := range s.pauses() {
			if d > 5*time.Second {
				t.Errorf("pause %d is %v: the place in the line is lost", i, d)
			}
		}
	})
}

func TestShortHTTPTimeoutShortensTheWait(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		first := lead(t, server.Client(named("ann")))
		config := server.Config()
		config.HTTP.Timeout, config.Candidate = 10*time.Second, client.Candidate{ID: "bob", Rounds: 2}
		c := newClient(t, config)
		_, err := c.Campaign(t.Context(), "reports")
		assert.ErrorIs(t, err, leadership.LeaseHeld, "its calls were cut off")
		first.Resign(t.Context())
	})
}
