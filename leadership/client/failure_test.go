package client_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/client"
)

// call is a call of a client, and whether it may change something.
type call struct {
	mutates bool
	do      func(context.Context, *client.Client) error
}

// calling makes the call with the request.
func calling[R, A any](mutates bool, method func(*client.Client, context.Context, R) (A, error), r R) call {
	return call{mutates, func(ctx context.Context, c *client.Client) error {
		_, err := method(c, ctx, r)
		return err
	}}
}

func doing(c leadership.Command) call { return calling(true, (*client.Client).Do, c) }

func calls() map[string]call {
	const changes, reads = true, false
	held := leadership.LeaseRequest{Election: "planner", CandidateID: "agent-7", Token: 1}
	check := leadership.TokenCheck{Election: "planner", Token: 1}
	question := leadership.AcknowledgementRequest{Election: "planner", Token: 1, Need: 1}
	return map[string]call{
		"acquire":               calling(changes, (*client.Client).Acquire, leadership.AcquireRequest{Election: "planner", CandidateID: "agent-7"}),
		"renew":                 calling(changes, (*client.Client).Renew, held),
		"release":               doing(leadership.Release{LeaseRequest: held}),
		"batch renew":           calling(changes, (*client.Client).BatchRenew, []leadership.LeaseRequest{held}),
		"configure":             doing(leadership.Configure{Election: "planner"}),
		"delete":                doing(leadership.Delete{Election: "planner"}),
		"join":                  calling(changes, (*client.Client).Join, leadership.JoinRequest{Election: "planner", CandidateID: "agent-7"}),
		"members":               calling(reads, (*client.Client).Members, "planner"),
		"await acknowledgement": calling(reads, (*client.Client).AwaitAcknowledgement, question),
		"check":                 calling(reads, (*client.Client).CheckToken, check),
		"batch check":           calling(reads, (*client.Client).BatchCheckTokens, []leadership.TokenCheck{check}),
		"get":                   calling(reads, (*client.Client).Get, "planner"),
		"read":                  calling(reads, (*client.Client).Read, leadership.ReadRequest{Election: "planner"}),
		"list":                  calling(reads, (*client.Client).List, leadership.ListRequest{}),
		"events":                calling(reads, (*client.Client).Events, leadership.EventsRequest{Election: "planner"}),
	}
}

func lost(mutates bool) leadership.Code {
	if mutates {
		return leadership.OutcomeUnknown
	}
	return leadership.StoreUnavailable
}

// serve returns a client of a server that answers every request with the handler.
func serve(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return clientOf(t, server.URL, server.Client().Transport)
}

func TestWithoutAConnectionNothingWasDone(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l.Close()
	for name, k := range calls() {
		err := k.do(t.Context(), clientOf(t, "http://"+l.Addr().String(), nil))
		if !errors.Is(err, leadership.StoreUnavailable) || errors.Is(err, leadership.OutcomeUnknown) {
			t.Errorf("%s: %v, want STORE_UNAVAILABLE", name, err)
		}
	}
}

func TestAContextThatHasEndedSendsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	for name, k := range calls() {
		if err := k.do(ctx, c); !errors.Is(err, leadership.StoreUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want STORE_UNAVAILABLE and the context's error", name, err)
		}
	}
}

func TestAfterALostReplyTheOutcomeOfAChangeIsUnknown(t *testing.T) {
	t.Parallel()
	clients := map[string]*client.Client{
		"it breaks":       serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		"without a trace": clientOf(t, "http://127.0.0.1", apitest.RoundTrip(func(*http.Request) (*http.Response, error) { return nil, errLostReply })),
		"half of it": serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			replying(http.StatusOK, "application/json", `{"election":"planner"`)(w, r)
		}),
	}
	for _, body := range []string{`{`, `[]`, `{}`, `{"results":[{}]}`, `{"election":"planner","state":"held"}`, `{"elections":[{}]}`, `{"events":{}}`} {
		clients[body] = answering(t, body)
	}
	for how, c := range clients {
		for name, k := range calls() {
			assert.ErrorIs(t, k.do(t.Context(), c), lost(k.mutates), "%s, %s", name, how)
		}
	}
}

func TestCancelledCallHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, k := range calls() {
		ctx, cancel := context.WithCancel(t.Context())
		c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			cancel()
			<-r.Context().Done()
		})
		if err := k.do(ctx, c); !errors.Is(err, lost(k.mutates)) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want %s and the context's error", name, err, lost(k.mutates))
		}
	}
}

func TestReplyOfAnotherServerIsShown(t *testing.T) {
	t.Parallel()
	code := func(c leadership.Code) func(bool) leadership.Code { return func(bool) leadership.Code { return c } }
	for _, c := range []struct {
		status      int
		contentType string
		body        string
		code        func(mutates bool) leadership.Code
	}{
		{404, "text/html", "<h1>Not here", nil},
		{400, "application/problem+json", `{"title":"Bad"}`, nil},
		{302, "text/html", "moved", nil},
		{401, "text/html", "who", code("UNAUTHENTICATED")},
		{429, "text/plain", "Rate exceeded.", code("RATE_LIMITED")},
		{503, "text/html", "later", lost},
		{200, "text/html", "<h1>Welcome", lost},
		{204, "", "", lost},
	} {
		cl := serve(t, replying(c.status, c.contentType, c.body))
		for name, k := range calls() {
			err := k.do(t.Context(), cl)
			var reply *client.ReplyError
			if !errors.As(err, &reply) || reply.Status != c.status || reply.Start != c.body {
				t.Errorf("%s: status %d %q becomes %v", name, c.status, c.body, err)
				continue
			}
			var got leadership.Code
			errors.As(err, &got)
			if want := c.code; want == nil && got != "" || want != nil && got != want(k.mutates) {
				t.Errorf("%s: status %d %q has code %q", name, c.status, c.body, got)
			}
		}
	}
}

func TestAGrantWithoutTheKeyThatTheServerChoseIsNotBelieved(t *testing.T) {
	t.Parallel()
	c := answering(t, leaseOf("planner", "agent-7", "1"))
	assert.ErrorIs(t, calls()["acquire"].do(t.Context(), c), leadership.OutcomeUnknown)
	key := leadership.NewKey()
	if g, err := c.Acquire(t.Context(), leadership.AcquireRequest{Election: "planner", CandidateID: "agent-7", Key: &key}); err != nil || g.Key != key {
		t.Errorf("with a key of its own: %v", err)
	}
}

func TestAnEndlessReplyIsCutOff(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		chunk := strings.Repeat(" ", 1<<20)
		for {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	})
	if _, err := c.Get(t.Context(), "planner"); !errors.Is(err, leadership.StoreUnavailable) || !strings.Contains(err.Error(), "larger than 16777216 bytes") {
		t.Errorf("%v", err)
	}
}

func TestAnHTTPSPortCalledWithoutTLSIsNamed(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	cl := newClient(t, client.Config{Server: "http://" + server.Listener.Addr().String()})
	if _, err := cl.Read(t.Context(), leadership.ReadRequest{Election: "reports"}); err == nil || !strings.Contains(err.Error(), "call it with https://") {
		t.Errorf("%v; want the advice to call it with https://", err)
	}
}
