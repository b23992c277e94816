package proxy

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Counter passes gRPC calls of all methods on to a server, and counts them by method.
type Counter struct {
	*relay

	mu    sync.Mutex // guards calls
	calls Calls
}

// Calls says how often each method was called, by the last part of its name.
type Calls map[string]int

// NewCounter returns a counter in front of the gRPC server at host:port, which uses no TLS. It
// lasts until the test ends.
func NewCounter(tb testing.TB, target string) *Counter {
	tb.Helper()
	c := &Counter{calls: Calls{}}
	r, err := newRelay(target, func(ctx context.Context, method string) (context.Context, error) {
		c.count(method)
		return ctx, nil
	})
	require.NoError(tb, err)
	tb.Cleanup(r.Close)
	c.relay = r
	return c
}

// Take returns the calls that have begun since the last Take.
func (c *Counter) Take() Calls {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.calls
	c.calls = Calls{}
	return taken
}

// Total returns the number of all calls.
func (c Calls) Total() (n int) {
	for _, calls := range c {
		n += calls
	}
	return n
}

// Plus returns the sum of both; nil if both are nil.
func (c Calls) Plus(others Calls) Calls {
	if c == nil {
		return maps.Clone(others)
	}
	sum := maps.Clone(c)
	for name, n := range others {
		sum[name] += n
	}
	return sum
}

// String returns the calls by name.
func (c Calls) String() string {
	switch {
	case c == nil:
		return "not counted"
	case len(c) == 0:
		return "none"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, c[name]))
	}
	return strings.Join(parts, ", ")
}

func (c *Counter) count(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[path.Base(method)]++
}
