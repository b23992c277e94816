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

	"regent/httpapi/apitest"
	"regent/leadership"
	"regent/leadership/client"
)

// calls returns all calls of a client, and whether each may change something.
func calls() map[string]struct {
	mutates bool
	do      func(context.Context, *client.Client) error
} {
	type call = struct {
		mutates bool
		do      func(context.Context, *client.Client) error
	}
	held := leadership.LeaseRequest{Election: "planner", CandidateID: "agent-7", Token: 1}
	check := leadership.TokenCheck{Election: "planner", Token: 1}
	return map[string]call{
		"acquire": {true, func(ctx context.Context, c *client.Client) error {
			_, err := c.Acquire(ctx, leadership.AcquireRequest{Election: "planner", CandidateID: "agent-7"})
			return err
		}},
		"renew":   {true, func(ctx context.Context, c *client.Client) error { _, err := c.Renew(ctx, held); return err }},
		"release": {true, func(ctx context.Context, c *client.Client) error { _, err := c.Release(ctx, held); return err }},
		"batch renew": {true, func(ctx context.Context, c *client.Client) error {
			_, err := c.BatchRenew(ctx, []leadership.LeaseRequest{held})
			return err
		}},
		"configure": {true, func(ctx context.Context, c *client.Client) error {
			_, err := c.Configure(ctx, leadership.ConfigureRequest{Election: "planner"})
			return err
		}},
		"delete": {true, func(ctx context.Context, c *client.Client) error {
			_, err := c.Delete(ctx, leadership.DeleteRequest{Election: "planner"})
			return err
		}},
		"join": {true, func(ctx context.Context, c *client.Client) error {
			_, err := c.Join(ctx, leadership.JoinRequest{Election: "planner", CandidateID: "agent-7"})
			return err
		}},
		"members": {false, func(ctx context.Context, c *client.Client) error { _, err := c.Members(ctx, "planner"); return err }},
		"await acknowledgement": {false, func(ctx context.Context, c *client.Client) error {
			_, err := c.AwaitAcknowledgement(ctx, leadership.AcknowledgementRequest{Election: "planner", Token: 1, Need: 1})
			return err
		}},
		"check": {false, func(ctx context.Context, c *client.Client) error { _, err := c.CheckToken(ctx, check); return err }},
		"batch check": {false, func(ctx context.Context, c *client.Client) error {
			_, err := c.BatchCheckTokens(ctx, []leadership.TokenCheck{check})
			return err
		}},
		"get": {false, func(ctx context.Context, c *client.Client) error { _, err := c.Get(ctx, "planner"); return err }},
		"read": {false, func(ctx context.Context, c *client.Client) error {
			_, err := c.Read(ctx, leadership.ReadRequest{Election: "planner"})
			return err
		}},
		"list": {false, func(ctx context.Context, c *client.Client) error {
			_, err := c.List(ctx, leadership.ListRequest{})
			return err
		}},
		"events": {false, func(ctx context.Context, c *client.Client) error {
			_, err := c.Events(ctx, leadership.EventsRequest{Election: "planner"})
			return err
		}},
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
	if err != nil {
		t.Fatal(err)
	}
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
	c := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for name, k := range calls() {
		if err := k.do(t.Context(), c); !errors.Is(err, lost(k.mutates)) {
			t.Errorf("%s: %v, want %s", name, err, lost(k.mutates))
		}
	}
}

func TestAfterHalfAReplyTheOutcomeOfAChangeIsUnknown(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, `{"election":"planner"`)
	})
	for name, k := range calls() {
		if err := k.do(t.Context(), c); !errors.Is(err, lost(k.mutates)) {
			t.Errorf("%s: %v, want %s", name, err, lost(k.mutates))
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

func TestTransportWithoutTraceHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, k := range calls() {
		c := clientOf(t, "http://127.0.0.1", apitest.RoundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New("lost") }))
		if err := k.do(t.Context(), c); !errors.Is(err, lost(k.mutates)) {
			t.Errorf("%s: %v, want %s", name, err, lost(k.mutates))
		}
	}
}

func TestReplyOfAnotherServerIsShown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status      int
		contentType string
		body        string
		code        func(mutates bool) leadership.Code
	}{
		{404, "text/html", "<h1>Not here", nil},
		{404, "application/json", `{"code":"NOT_FOUND"}`, nil},
		{400, "application/problem+json", `{"title":"Bad"}`, nil},
		{302, "text/html", "moved", nil},
		{401, "text/html", "who", code("UNAUTHENTICATED")},
		{403, "text/html", "no", code("PERMISSION_DENIED")},
		{429, "text/plain", "Rate exceeded.", code("RATE_LIMITED")},
		{502, "text/html", "bad gateway", lost},
		{503, "text/html", "later", lost},
		{200, "text/html", "<h1>Welcome", lost},
		{204, "", "", lost},
	} {
		for name, k := range calls() {
			cl := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.contentType)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
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

func code(c leadership.Code) func(bool) leadership.Code {
	return func(bool) leadership.Code { return c }
}

func TestUnreadableSuccessIsNotBelieved(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{`, `[]`, `{}`, `{"results":[]}`, `{"results":[{}]}`, `{"election":"planner","state":"held"}`, `{"elections":[{}]}`, `{"events":{}}`} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, body)
		})
		for name, k := range calls() {
			if err := k.do(t.Context(), c); !errors.Is(err, lost(k.mutates)) {
				t.Errorf("%s: %s becomes %v, want %s", name, body, err, lost(k.mutates))
			}
		}
	}
}

func TestAGrantWithoutTheKeyThatTheServerChoseIsNotBelieved(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"election":"planner","state":"held","leaderId":"agent-7","fencingToken":1,"revision":1,"leaseDuration":"30s","expiresInMs":30000,"configuration":{"leaseDuration":"30s","lockDelay":"0s"}}`)
	})
	if err := calls()["acquire"].do(t.Context(), c); !errors.Is(err, leadership.OutcomeUnknown) {
		t.Errorf("%v, want OUTCOME_UNKNOWN", err)
	}
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

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			t.Error("the redirect was followed")
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	for name, k := range calls() {
		if err := k.do(t.Context(), c); err == nil {
			t.Errorf("%s succeeds", name)
		}
	}
}

func TestAnHTTPSPortCalledWithoutTLSIsNamed(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	cl, err := client.New(client.Config{Server: "http://" + server.Listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cl.Read(t.Context(), leadership.ReadRequest{Election: "reports"}); err == nil || !strings.Contains(err.Error(), "call it with https://") {
		t.Errorf("%v; want the advice to call it with https://", err)
	}
}
