package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/client"
)

// one is a watch of one election from now on.
var one = client.WatchRequest{Election: "planner"}

func TestWatchYieldsTheStateAndThenEachEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedServer{acts: []http.HandlerFunc{streaming(snapshot("planner", 7), event("planner", 8), ping, event("planner", 9))}}
		got := watch(t.Context(), s.client(t), one, 3)
		assert.Empty(t, cmp.Diff([]string{"planner is at 7", "planner 8", "planner 9"}, got.words), "told (-want +got)")
		assert.Empty(t, cmp.Diff([]string{"7", "8", "9"}, got.cursors), "cursors (-want +got)")
		r := s.requests[0]
		assert.Equal(t, "GET http://localhost/v1/elections/planner/events", r.Method+" "+r.URL.String(), "asked")
		assert.Equal(t, "text/event-stream", r.Header.Get("Accept"), "asked")
		assert.Equal(t, "identity", r.Header.Get("Accept-Encoding"), "lets the answer be encoded as")
		if _, there := r.Header["Last-Event-Id"]; there {
			t.Error("asked to resume")
		}
	})
}

func TestWatchResumesFromACursor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedServer{acts: []http.HandlerFunc{streaming(event("planner", 7), event("planner", 8))}}
		got := watch(t.Context(), s.client(t), client.WatchRequest{Election: "planner", After: "7"}, 1)
		if got.words[0] != "planner 8" || s.cursors()[0] != "7" {
			t.Errorf("told %q after %q", got.words, s.cursors())
		}
		s = &scriptedServer{acts: []http.HandlerFunc{streaming(eventAt("a", 8, "T2"))}}
		got = watch(t.Context(), s.client(t), client.WatchRequest{After: "T1"}, 1)
		if got.words[0] != "a 8" || s.cursors()[0] != "T1" {
			t.Errorf("told %q after %q", got.words, s.cursors())
		}
	})
}

func TestInvalidRequestIsNotSent(t *testing.T) {
	t.Parallel()
	c := clientOf(t, "http://localhost", &scriptedServer{acts: []http.HandlerFunc{func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }}})
	for _, err := range c.Observe(t.Context(), "") {
		assert.ErrorIs(t, err, leadership.InvalidArgument, "to observe no election")
	}
	for field, requests := range map[string][]client.WatchRequest{
		"election": {{Election: "../planner"}, {Election: "A"}},
		"prefix":   {{Election: "planner", Prefix: "p"}, {Election: "planner", Of: "planner"}},
		"of":       {{Of: "A"}, {Of: "planner", Prefix: "p"}},
		"after": {
			{Election: "planner", After: "x"},
			{Election: "planner", After: "07"},
			{After: "a\r\nX: y"},
			{After: "é"},
			{After: strings.Repeat("x", 65)},
		},
	} {
		for _, r := range requests {
			got := watch(t.Context(), c, r, 1)
			if refusal, ok := errors.AsType[*leadership.Error](got.err); !ok || refusal.Code != leadership.InvalidArgument || refusal.Field != field {
				t.Errorf("%+v: %v; want INVALID_ARGUMENT about %s", r, got.err, field)
			}
		}
	}
}

// failing fails once, and then is the scripted server.
type failing struct {
	*scriptedServer
	first *http.Request
}

func (f *failing) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.first == nil {
		f.first = r
		return nil, errors.New("no route")
	}
	return f.scriptedServer.RoundTrip(r)
}

func TestNoConnectionIsLeftOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &failing{scriptedServer: &scriptedServer{acts: []http.HandlerFunc{
			problem(503, "DRAINING"), replying(200, "text/html", "hello"), breaking(), streaming("data: {\n\n"), streaming(end("limit", "0")), streaming(snapshot("planner", 7)),
		}}}
		watch(t.Context(), clientOf(t, "http://localhost", f), one, 1)
		if f.first.Context().Err() == nil {
			t.Error("a call without an answer continues")
		}
		for i, r := range f.requests {
			if r.Context().Err() == nil || f.open[i] {
				t.Errorf("connection %d is left open", i)
			}
		}
		if len(f.requests) != len(f.acts) {
			t.Errorf("%d connections, want %d", len(f.requests), len(f.acts))
		}
	})
}

func TestTheEndOfAContextEndsAWatchWithItsError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act   http.HandlerFunc
		after time.Duration
	}{
		"before it begins":  {streaming(), 0},
		"while it connects": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, time.Second},
		"while it listens":  {streaming(snapshot("planner", 7)), time.Second},
		"between two tries": {problem(503, "STORE_UNAVAILABLE"), 20 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), c.after, errors.New("a cause"))
			defer cancel()
			began := time.Now()
			r := one
			r.Connection = func(err error) {
				if err != nil && !errors.Is(err, leadership.StoreUnavailable) || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: the end is reported as a connection error: %v", name, err)
				}
			}
			got := watch(ctx, (&scriptedServer{acts: []http.HandlerFunc{c.act}}).client(t), r, 2)
			if !errors.Is(got.err, context.DeadlineExceeded) || errors.Is(got.err, leadership.StoreUnavailable) {
				t.Errorf("%s: %v; want the context's error alone", name, got.err)
			}
			if took := time.Since(began); took != c.after {
				t.Errorf("%s: it ended after %v, and the context after %v", name, took, c.after)
			}
		})
	}
}
