package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/rule"
	"regent/leadership/wire"
)

// broken is a service whose reads and acquires do what a test says.
type broken struct {
	instance.Service
	do func(context.Context) error
}

func (b broken) Read(ctx context.Context, _ leadership.ReadRequest) (leadership.Reading, error) {
	return leadership.Reading{}, b.do(ctx)
}

func (b broken) Acquire(ctx context.Context, _ leadership.AcquireRequest) (leadership.Grant, error) {
	return leadership.Grant{}, b.do(ctx)
}

func (b broken) BatchRenew(ctx context.Context, batch []leadership.LeaseRequest) ([]leadership.Result, error) {
	results := make([]leadership.Result, len(batch))
	for i := range results {
		results[i].Err = b.do(ctx)
	}
	return results, nil
}

func brokenFixture(t *testing.T, do func(context.Context) error) *fixture {
	t.Helper()
	return newFixtureOn(t, httpapi.Config{Service: broken{do: do}, RequestTimeout: time.Minute})
}

// line returns the log line of the only request.
func (w *fixture) line() map[string]any {
	w.t.Helper()
	if n := strings.Count(w.log.String(), "\n"); n != 1 {
		w.t.Fatalf("%d lines in the log, want 1: %s", n, w.log)
	}
	var line map[string]any
	require.NoError(w.t, json.Unmarshal(w.log.Bytes(), &line))
	return line
}

func TestAFailureIsToldByItsCodeAndLoggedWithItsCause(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   leadership.Code
		level  string
	}{
		{errors.New("disk /dev/sda1 is on fire"), 500, wire.Internal, "ERROR"},
		{rule.Corrupt("planner", errors.New("its revision is 3")), 500, leadership.RecordCorrupt, "ERROR"},
		{fmt.Errorf("file: /dev/sda1: %w", leadership.StoreUnavailable), 503, leadership.StoreUnavailable, "WARN"},
		{fmt.Errorf("file: /dev/sda1: %w: %w", leadership.OutcomeUnknown, context.DeadlineExceeded), 504, leadership.OutcomeUnknown, "WARN"},
		{wire.Draining, 503, wire.Draining, "DEBUG"},
	} {
		w := brokenFixture(t, func(context.Context) error { return c.err })
		a := w.do("POST", "/v1/elections/planner:acquire", `{"candidateId":"agent-7","key":"`+key+`"}`, wire.RequestIDHeader, "call-1")
		p := a.problem(t)
		if a.status != c.status || p.Code != c.code || p.RequestID != "call-1" || strings.Contains(string(a.body), "sda1") {
			t.Errorf("%v becomes %d %s", c.err, a.status, a.body)
		}
		if c.status > 500 && a.header.Get("Retry-After") != "1" {
			t.Errorf("%v has Retry-After %q, want 1", c.err, a.header.Get("Retry-After"))
		}
		line := w.line()
		want := map[string]any{
			"level": c.level, "method": "POST", "route": "/v1/elections/{election}:acquire", "status": float64(c.status),
			"code": string(c.code), "requestId": "call-1", "cause": c.err.Error(),
		}
		for name, value := range want {
			if line[name] != value {
				t.Errorf("%v is logged with %s %v, want %v", c.err, name, line[name], value)
			}
		}
		if strings.Contains(w.log.String(), key) || strings.Contains(w.log.String(), "planner:") {
			t.Errorf("the log has the key or the path: %s", w.log)
		}
	}
}

func TestAPanicIsAnInternalErrorWithItsStackInTheLogAlone(t *testing.T) {
	t.Parallel()
	w := brokenFixture(t, func(context.Context) error { panic("index out of range") })
	a := w.do("GET", "/v1/elections/planner", "")
	if p := a.problem(t); a.status != 500 || p.Code != wire.Internal || strings.Contains(string(a.body), "index") {
		t.Errorf("%d %s", a.status, a.body)
	}
	line := w.line()
	if line["cause"] != "panic: index out of range" || !strings.Contains(fmt.Sprint(line["stack"]), "failure_test.go") || line["level"] != "ERROR" {
		t.Errorf("the log says %v", line)
	}
}

func TestAnAbortedHandlerIsNotRecovered(t *testing.T) {
	t.Parallel()
	w := brokenFixture(t, func(context.Context) error { panic(http.ErrAbortHandler) })
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("recovered %v, want http.ErrAbortHandler", v)
		}
	}()
	w.do("GET", "/v1/elections/planner", "")
	t.Error("the handler returned")
}

func TestTheCauseOfAHiddenFailureInABatchIsLogged(t *testing.T) {
	t.Parallel()
	w := brokenFixture(t, func(context.Context) error { return fmt.Errorf("sda1: %w", leadership.StoreUnavailable) })
	entry := `{"election":"%s",` + asLeader[1:]
	a := w.do("POST", "/v1/elections:batchRenew", `{"renewals":[`+fmt.Sprintf(entry, "a")+","+fmt.Sprintf(entry, "b")+`]}`)
	if a.status != 200 || strings.Contains(string(a.body), "sda1") || strings.Count(string(a.body), "STORE_UNAVAILABLE") < 2 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if line := w.line(); line["level"] != "WARN" || line["cause"] != "sda1: STORE_UNAVAILABLE" {
		t.Errorf("the log says %v", line)
	}
}

func TestACallerThatLeavesIsLoggedAsSuch(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	w := brokenFixture(t, func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return fmt.Errorf("%w: %w", leadership.StoreUnavailable, ctx.Err())
	})
	w.send(httptest.NewRequestWithContext(ctx, "GET", "/v1/elections/planner", nil), "")
	if line := w.line(); line["status"] != 499.0 || line["level"] != "DEBUG" {
		t.Errorf("the log says %v", line)
	}
}

func TestACallOfTheServiceIsBoundedInTime(t *testing.T) {
	t.Parallel()
	service := broken{do: func(ctx context.Context) error {
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > 10*time.Second {
			t.Errorf("the deadline is %v, %t", deadline, ok)
		}
		return leadership.StoreUnavailable
	}}
	newFixtureOn(t, httpapi.Config{Service: service}).do("GET", "/v1/elections/planner", "")
}

func TestAValidRequestIDIsKept(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for id, taken := range map[string]bool{"call-1": true, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false, "a b": false, "a\"b": false, "a\nb": false} {
		got := w.do("GET", "/health/live", "", wire.RequestIDHeader, id).header.Get(wire.RequestIDHeader)
		if (got == id) != taken || !wire.ValidRequestID(got) {
			t.Errorf("the id %q becomes %q", id, got)
		}
	}
	first, second := w.do("GET", "/health/live", ""), w.do("GET", "/health/live", "")
	if first.header.Get(wire.RequestIDHeader) == second.header.Get(wire.RequestIDHeader) {
		t.Error("two requests have one id")
	}
}

func TestReadinessIsThatOfTheConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   leadership.Code
	}{
		{nil, 200, ""},
		{errors.New("sda1"), 503, leadership.StoreUnavailable},
		{wire.Draining, 503, wire.Draining},
	} {
		w := newFixtureOn(t, httpapi.Config{Ready: func(context.Context) (string, error) { return "", c.err }})
		a := w.do("GET", "/health/ready", "")
		if a.status != c.status || strings.Contains(string(a.body), "sda1") {
			t.Errorf("ready says %v: %d %s", c.err, a.status, a.body)
		}
		if c.code != "" && a.problem(t).Code != c.code {
			t.Errorf("ready says %v: %s", c.err, a.body)
		}
		if live := w.do("GET", "/health/live", ""); live.status != 200 {
			t.Errorf("ready says %v, and live has status %d", c.err, live.status)
		}
	}
	if a := newFixtureOn(t, httpapi.Config{}).do("GET", "/health/ready", ""); a.status != 200 {
		t.Errorf("without Ready: %d", a.status)
	}
}

func TestAHeaderOfUpTo20KiBIsAccepted(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(newFixture(t).handler)
	server.Config = httpapi.Server(server.Config.Handler, nil)
	server.Start()
	t.Cleanup(server.Close)
	for size, want := range map[int]int{19: http.StatusOK, 21: http.StatusRequestHeaderFieldsTooLarge, 64: http.StatusRequestHeaderFieldsTooLarge} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/health/live", nil)
		require.NoError(t, err)
		request.Header.Set("X-Bomb", strings.Repeat("x", size<<10))
		response, err := server.Client().Do(request)
		require.NoError(t, err)
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%d KiB: status %d, want %d", size, response.StatusCode, want)
		}
	}
}
