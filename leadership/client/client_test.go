package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/instance"
	"regent/leadership/service"
	"regent/store/memory"
)

// A Client has the methods of a Service.
var _ instance.Protocol = (*client.Client)(nil)

// connect returns a client of an instance on the store, through a real server. Every exchange is
// checked against the API's specification.
func connect(t *testing.T, store service.Store) *client.Client {
	t.Helper()
	server := httptest.NewServer(api(t, store))
	t.Cleanup(server.Close)
	return clientOf(t, server.URL, apitest.New(t).Transport(server.Client().Transport))
}

// api returns the API of the only instance on the store.
func api(t *testing.T, store service.Store) http.Handler {
	t.Helper()
	inst, err := instance.New(instance.Config{Store: store, Alone: true})
	require.NoError(t, err)
	return httpapi.New(httpapi.Config{Service: inst})
}

func clientOf(t *testing.T, url string, transport http.RoundTripper) *client.Client {
	t.Helper()
	return newClient(t, client.Config{Server: url, HTTP: &http.Client{Transport: transport}})
}

func newClient(t *testing.T, config client.Config) *client.Client {
	t.Helper()
	c, err := client.New(config)
	require.NoError(t, err)
	return c
}

func TestAClientAnswersAsTheServiceDoes(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	newStore := func() service.Store { return memory.New(memory.Config{Now: func() time.Time { return now }}) }
	key := leadership.Key{1}
	direct, remote := service.New(newStore()), connect(t, newStore())
	lease := func(l leadership.Lease, err error) any { return []any{withoutJitter(l), err} }
	for _, c := range []struct {
		name string
		call func(context.Context, instance.Protocol) any
	}{
		{"acquire", func(ctx context.Context, s instance.Protocol) any {
			g, err := s.Acquire(leadership.WithRequestID(ctx, "call-1"), leadership.AcquireRequest{Election: "planner", CandidateID: "agent-7", Key: &key, LeaseDuration: 1500 * time.Millisecond, Metadata: []byte(` {"b":"<&>","a":1.0} `)})
			return []any{withoutJitter(g.Lease), g.Key.Text(), err}
		}},
		{"acquire by another", func(ctx context.Context, s instance.Protocol) any {
			_, err := s.Acquire(ctx, leadership.AcquireRequest{Election: "planner", CandidateID: "agent-8"})
			return err
		}},
		{"renew", func(ctx context.Context, s instance.Protocol) any {
			return lease(s.Renew(ctx, leadership.LeaseRequest{Election: "planner", CandidateID: "agent-7", Key: key, Token: 1}))
		}},
		{"check", func(ctx context.Context, s instance.Protocol) any {
			return lease(s.CheckToken(ctx, leadership.TokenCheck{Election: "planner", Token: 1}))
		}},
		{"get", func(ctx context.Context, s instance.Protocol) any { return lease(s.Get(ctx, "planner")) }},
		{"batch renew", func(ctx context.Context, s instance.Protocol) any {
			return results(s.BatchRenew(ctx, []leadership.LeaseRequest{
				{Election: "planner", CandidateID: "agent-7", Key: key, Token: 1},
				{Election: "scribe", CandidateID: "agent-7", Key: key, Token: 1},
				{Election: "clerk", CandidateID: "a b", Key: key, Token: 1},
				{Election: "Clerk", CandidateID: "agent-7", Key: key, Token: 1},
			}))
		}},
		{"batch check", func(ctx context.Context, s instance.Protocol) any {
			return results(s.BatchCheckTokens(ctx, []leadership.TokenCheck{{Election: "planner", Token: 1}, {Election: "scribe", Token: 1}, {Election: "clerk"}}))
		}},
		{"release", func(ctx context.Context, s instance.Protocol) any {
			return lease(s.Do(ctx, leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: "planner", CandidateID: "agent-7", Key: key, Token: 1}}))
		}},
		{"configure", func(ctx context.Context, s instance.Protocol) any {
			return lease(s.Do(ctx, configure("planner", leadership.Config{LeaseDuration: time.Minute, LockDelay: 1500 * time.Millisecond}, 2)))
		}},
		{"list", func(ctx context.Context, s instance.Protocol) any {
			page, err := s.List(ctx, leadership.ListRequest{Prefix: "pla", After: "pla", Limit: 1})
			return []any{page, err}
		}},
		{"unlock without an acknowledgement", func(ctx context.Context, s instance.Protocol) any {
			_, err := s.Do(ctx, leadership.Unlock{Election: "planner", Reason: "it hangs", Actor: "olga"})
			return errors.Is(err, leadership.LeaseHeld) && strings.Contains(err.Error(), "two leaders may believe until ")
		}},
		{"delete", func(ctx context.Context, s instance.Protocol) any {
			return lease(s.Do(ctx, leadership.Delete{Election: "planner", IfRevision: 3, Force: true}))
		}},
	} {
		want, got := c.call(t.Context(), direct), c.call(t.Context(), remote)
		assert.Empty(t, cmp.Diff(want, got, cmpopts.IgnoreFields(leadership.Lease{}, "CreatedAt", "VacantSince")), "%s: the service (-) and the client (+) differ", c.name)
	}
	sameHistory(t, direct, remote)
}

func configure(e leadership.Election, c leadership.Config, ifRevision leadership.Revision) leadership.Configure {
	return leadership.Configure{Election: e, Config: c, IfRevision: ifRevision}
}

// withoutJitter removes the hint that the server randomises.
func withoutJitter(l leadership.Lease) leadership.Lease {
	l.RenewIn = 0
	return l
}

func results(rs []leadership.Result, err error) any {
	for i := range rs {
		rs[i].Lease = withoutJitter(rs[i].Lease)
	}
	return []any{rs, err}
}

// sameHistory compares the events without the request ids that the server has generated.
func sameHistory(t *testing.T, direct, remote instance.Protocol) {
	t.Helper()
	request := leadership.EventsRequest{Election: "planner", Limit: 10}
	want, err := direct.Events(t.Context(), request)
	require.NoError(t, err)
	got, err := remote.Events(t.Context(), request)
	require.NoError(t, err)
	for i := range got {
		if got[i].RequestID == "" {
			t.Errorf("event %d has no request id", got[i].Revision)
		}
		if want[i].RequestID == "" {
			got[i].RequestID = ""
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || want[0].RequestID != "call-1" {
		t.Errorf("the histories differ:\n%s", diff)
	}
	rest, err := remote.Events(t.Context(), leadership.EventsRequest{Election: "planner", After: want[len(want)-1].Revision})
	if err != nil || len(rest) != 0 {
		t.Errorf("after the newest event there are %v, %v", rest, err)
	}
}

func TestInvalidServerAddressIsRefused(t *testing.T) {
	t.Parallel()
	for server, reason := range map[string]string{
		"":                           "begin with http:// or https://",
		"localhost:8080":             "begin with http:// or https://",
		"http://":                    "has no host",
		"http://a b":                 "invalid character",
		"http://user:secret@host":    "must not contain a user or a password",
		"http://host?x=1":            "must not contain ? or #",
		"http://user:pa%ss@host":     "must not contain a user or a password",
		"http+unix:///var/run/x.sck": "begin with http:// or https://",
	} {
		_, err := client.New(client.Config{Server: server})
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("server %q: error %v, want %q", server, err, reason)
			continue
		}
		for _, secret := range []string{"secret", ":pa", "user:"} {
			assert.NotContains(t, err.Error(), secret, "server %q: error %v repeats it", server, err)
		}
	}
}

func TestPathOfTheServerIsAPrefix(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.StripPrefix("/regent", api(t, memory.New(memory.Config{}))))
	t.Cleanup(server.Close)
	_, err := clientOf(t, server.URL+"/regent/", nil).List(t.Context(), leadership.ListRequest{})
	assert.NoError(t, err)
}

func TestNothingIsSentOverPlainHTTPToAnotherMachine(t *testing.T) {
	t.Parallel()
	for _, server := range []string{
		"http://regent.example", "HTTP://regent.example", "http://192.0.2.1:8080", "http://10.0.0.7", "http://[2001:db8::1]:8080", "http://0.0.0.0:8080",
		"http://localhost.example", "http://evil.localhost", "http://127.0.0.1.example", "http://metadata.google.internal",
	} {
		sent := apitest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			t.Errorf("%s was sent", r.URL)
			return nil, errors.New("refused")
		})
		config := client.Config{Server: server, HTTP: &http.Client{Transport: sent}, Credential: func(context.Context) (string, error) {
			t.Error("a token was asked for")
			return "secret", nil
		}}
		if _, err := client.New(config); !errors.Is(err, client.ErrPlainHTTP) || !strings.Contains(err.Error(), "https://") {
			t.Errorf("server %q: %v; want ErrPlainHTTP and what to do", server, err)
		}
		config.Insecure = true
		_, err := client.New(config)
		assert.NoError(t, err, "server %q, Insecure", server)
	}
	for _, server := range []string{"http://127.0.0.1:8080", "http://127.8.9.10", "http://[::1]:8080", "http://[::ffff:127.0.0.1]", "http://LocalHost:80", "https://regent.example/", "http://[::1]:8080/prefix/"} {
		_, err := client.New(client.Config{Server: server})
		assert.NoError(t, err, "server %q", server)
	}
}

// Where the server knows its callers, an order names no actor.
func TestAHaltNeedsNoActor(t *testing.T) {
	t.Parallel()
	service := api(t, memory.New(memory.Config{}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		service.ServeHTTP(w, r.WithContext(leadership.WithActor(r.Context(), "olga")))
	}))
	t.Cleanup(server.Close)
	c := clientOf(t, server.URL, server.Client().Transport)
	for _, order := range []leadership.Order{
		{Kind: leadership.OrderHalt, Election: "jobs.*", For: time.Hour, Reason: "a test"},
		{Kind: leadership.OrderUnhalt, Election: "jobs.*", Reason: "a test"},
	} {
		if _, err := c.Do(t.Context(), order); err != nil {
			t.Errorf("%s: %v", order.Kind, err)
		}
	}
	_, err := c.Do(t.Context(), leadership.Order{Kind: leadership.OrderUnhalt, Election: "../x*", Reason: "a test"})
	if refusal, ok := errors.AsType[*leadership.Error](err); !ok || refusal.Field != "election" {
		t.Errorf("a pattern that is none: %v", err)
	}
}
