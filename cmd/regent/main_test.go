package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/cmd/regent/internal/leash"
	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/store/memory"
	"regent/test/machine"
)

// beRegent makes the test binary act as regent, for tests that need a process to signal.
const beRegent = "BE_REGENT=1"

func TestMain(m *testing.M) {
	if code, played := leash.Main(os.Args, slog.New(slog.DiscardHandler)); played { // a guard, which has no environment
		os.Exit(code)
	}
	if slices.Contains(os.Environ(), beRegent) {
		main()
	}
	machine.DefaultSignals()
	os.Exit(m.Run())
}

type result struct {
	code     int
	out, err string
}

// regent runs a command in this process. args is split at spaces.
func regent(t *testing.T, env []string, args string, more ...string) result {
	t.Helper()
	return regentReading(t, "", env, args, more...)
}

func regentReading(t *testing.T, in string, env []string, args string, more ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	code := run(t.Context(), append(strings.Fields(args), more...), system{strings.NewReader(in), &out, &err, env})
	return result{code, out.String(), err.String()}
}

func (r result) want(t *testing.T, code int) result {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d\nstdout: %s\nstderr: %s", r.code, code, r.out, r.err)
	}
	return r
}

type clock struct {
	mu  sync.Mutex
	now time.Time // guarded by mu
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// startServer serves an empty store and returns the environment that names the server.
func startServer(t testing.TB, c *clock) []string {
	t.Helper()
	leases := memory.New(memory.Config{Now: c.Now})
	start := c.Now()
	inst := newTestInstance(t, instance.Config{Store: leases, Journal: leases, Now: func() time.Duration { return c.Now().Sub(start) }})
	server := httptest.NewServer(httpapi.New(httpapi.Config{Service: inst}))
	t.Cleanup(server.Close)
	return []string{"REGENT_SERVER=" + server.URL}
}

// newTestInstance returns the only instance on a store. It is closed when the test ends.
func newTestInstance(t testing.TB, c instance.Config) *instance.Instance {
	t.Helper()
	c.Alone = true
	inst, err := instance.New(c)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		inst.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return inst
}

// testKey returns a key that consists of one repeated byte.
func testKey(b byte) string {
	var k leadership.Key
	for i := range k {
		k[i] = b
	}
	return k.Text()
}
