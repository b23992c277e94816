package client_test

import (
	"context"
	"errors"
	"net/http"
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

// newEpoch orders one for the term with the token.
func newEpoch(t *testing.T, server *clienttest.Server, token leadership.Token) {
	t.Helper()
	order(t, server, leadership.Order{Kind: leadership.OrderApprove, Token: token, NewEpoch: true})
}

// inEpochs is an election in which operators may begin new epochs.
func inEpochs(t *testing.T, server *clienttest.Server) {
	t.Helper()
	limit(t, server, leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: 24 * time.Hour}})
}

func TestAnEpochThatTheLeaderHasNotHeardOfIsReleasedToo(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		inEpochs(t, server)
		for name, end := range map[string]func(*client.Lease) error{
			"resign":    func(l *client.Lease) error { return l.Resign(t.Context()) },
			"step down": func(l *client.Lease) error { return l.StepDown(t.Context(), "done", 0) },
		} {
			l := lead(t, server.Client(named("ann")))
			newEpoch(t, server, l.Token())
			assert.NoError(t, end(l), name)
			assert.Empty(t, leader(t, server), "%s: leads afterwards", name)
		}
	})
}

func TestTheOldDeadlineCountsUntilANewEpochIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		inEpochs(t, server)
		var l *client.Lease
		var cut atomic.Bool
		var told time.Time // when the server spoke of the new epoch
		c := over(t, server, named("ann"), func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, wire.Renew) && cut.Load() && !told.IsZero() {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			response, err := send()
			if err == nil && response.StatusCode == http.StatusConflict {
				told = time.Now()
			}
			return response, err
		})
		l = lead(t, c)
		time.Sleep(time.Minute)
		cut.Store(true)
		newEpoch(t, server, 1)
		before := l.Deadline()
		<-l.Context().Done()
		if cause := context.Cause(l.Context()); !errors.Is(cause, client.ErrExpired) || l.Deadline() != before || l.Token() != 1 || told.IsZero() {
			t.Errorf("without an answer under the new token the lease ended because: %v; token %d, deadline %v, before it %v", cause, l.Token(), l.Deadline(), before)
		}
		cut.Store(false)
		l.Resign(t.Context())
	})
}

func TestALateAnswerDoesNotReviveALeaseInANewEpoch(t *testing.T) {
	bubble(t, func(t *testing.T, server *clienttest.Server) {
		inEpochs(t, server)
		var late atomic.Bool
		c := over(t, server, named("ann"), func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if !late.Load() || !strings.HasSuffix(r.URL.Path, wire.Renew) {
				return send()
			}
			response, err := send()
			if err == nil && response.StatusCode == http.StatusOK {
				time.Sleep(time.Hour) // its context is over long since
			}
			return response, err
		})
		l := lead(t, c)
		late.Store(true)
		newEpoch(t, server, 1)
		<-l.Context().Done()
		late.Store(false)
		time.Sleep(2 * time.Hour)
		if l.Valid() || l.Token() != 1 {
			t.Errorf("a late answer has revived the lease, with token %d", l.Token())
		}
		l.Resign(t.Context())
	})
}

// scripted returns a client of a server with these acts, on the bubble's clock.
func scripted(t *testing.T, clock *clienttest.Server, acts ...http.HandlerFunc) *client.Client {
	t.Helper()
	server := &scriptedServer{acts: acts}
	return over(t, clock, named("ann"), func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
		return server.RoundTrip(r)
	})
}

// spoken is a refusal of a renewal of ann's lease.
func spoken(reason, fields string) http.HandlerFunc {
	return replying(http.StatusConflict, "application/problem+json", `{"type":"about:blank","title":"No","status":409,"detail":"no","code":"LEASE_LOST"`+reason+fields+`}`)
}

func TestOnlyAnEpochOfItsOwnLeaseIsFollowed(t *testing.T) {
	t.Parallel()
	const (
		epoch = `,"reason":"EPOCH"`
		ann   = `,"election":"reports","state":"held","leaderId":"ann","fencingToken":4,"revision":9,"leaseDuration":"30s","expiresInMs":30000,"configuration":{"leaseDuration":"30s","lockDelay":"0s"}`
	)
	granted := replying(http.StatusOK, "application/json", `{"election":"reports","state":"held","leaderId":"ann","fencingToken":3,"revision":8,"leaseDuration":"30s","expiresInMs":30000,"renewInMs":10000,"configuration":{"leaseDuration":"30s","lockDelay":"0s"}}`)
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		follows bool
	}{
		"its own":           {spoken(epoch, ann), true},
		"the same again":    {spoken(epoch, ann), false},
		"no reason":         {spoken("", ann), false},
		"another reason":    {spoken(`,"reason":"DEPOSED"`, ann), false},
		"no lease":          {spoken(epoch, ""), false},
		"another election":  {spoken(epoch, strings.Replace(ann, `"reports"`, `"others"`, 1)), false},
		"another leader":    {spoken(epoch, strings.Replace(ann, `"ann"`, `"bob"`, 1)), false},
		"the same token":    {spoken(epoch, strings.Replace(ann, `:4`, `:3`, 1)), false},
		"an earlier token":  {spoken(epoch, strings.Replace(ann, `:4`, `:2`, 1)), false},
		"a vacant election": {spoken(epoch, strings.Replace(ann, `"held"`, `"vacant"`, 1)), false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, clock *clienttest.Server) {
				next := replying(http.StatusOK, "application/json", strings.Replace(`{"x":0`+ann+`,"renewInMs":10000}`, `"x":0,`, ``, 1))
				if name == "the same again" {
					next = c.answer
				}
				l, err := scripted(t, clock, granted, c.answer, next).TryAcquire(t.Context(), "reports")
				require.NoError(t, err)
				time.Sleep(11 * time.Second)
				if follows := l.Valid() && l.Token() == 4; follows != c.follows || !follows && l.Token() != 3 {
					t.Errorf("it follows: %v, with token %d, %v", follows, l.Token(), context.Cause(l.Context()))
				}
				if !c.follows && !errors.Is(context.Cause(l.Context()), client.ErrLost) {
					t.Errorf("it ended because: %v", context.Cause(l.Context()))
				}
				l.Resign(t.Context())
			})
		})
	}
}
