package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
	"regent/test/load"
)

// growLed counts the calls of processes that lead many elections through one client of the SDK
// each.
func (b *bench) growLed(ctx context.Context) (Growth, error) {
	g := Growth{
		Title: "Elections that one process leads",
		About: fmt.Sprintf("Each is led by `Campaign` of leadership/client, all through one client, which renews by itself; a lease is %v. Counted are the calls of "+
			"the client in a third of a lease, which is how often a lease is to be renewed; the client renews a little earlier. They are counted for %d leases, after as many.",
			b.LedLease, b.LedLeases),
		Columns: []string{"elections", "calls in a third of a lease", "of these `:batchRenew`"},
		Rows:    make([][]float64, len(b.Led)),
	}
	err := b.fresh(ctx, func(s *regent) error {
		return load.Each(len(b.Led), len(b.Led), func(i int) (err error) {
			g.Rows[i], err = b.ledRow(ctx, s, b.Led[i])
			return err
		})
	})
	return g, err
}

// ledRow leads n elections for a while.
func (b *bench) ledRow(ctx context.Context, s *regent, n int) ([]float64, error) {
	calls := &callCounter{Transport: newWire()}
	defer calls.CloseIdleConnections()
	c, err := s.newClient(leadership.CandidateID(fmt.Sprintf("leader-of-%d", n)), b.LedLease, calls)
	if err != nil {
		return nil, err
	}
	leases := make([]*client.Lease, n)
	err = load.Each(n, keepers, func(i int) (err error) {
		leases[i], err = c.Campaign(ctx, leadership.Election(fmt.Sprintf("led-%d-%d", n, i)))
		return err
	})
	if err != nil {
		return nil, err
	}
	lasting := time.Duration(b.LedLeases) * b.LedLease
	<-time.After(lasting)
	all, batches := calls.all.Load(), calls.batches.Load()
	<-time.After(lasting)
	thirds := float64(3 * b.LedLeases)
	row := []float64{float64(n), float64(calls.all.Load()-all) / thirds, float64(calls.batches.Load()-batches) / thirds}
	for _, l := range leases {
		if !l.Valid() {
			err = errors.Join(err, fmt.Errorf("%s was lost: %w", l.Election(), context.Cause(l.Context())))
		}
	}
	return row, errors.Join(err, load.Each(n, keepers, func(i int) error { return leases[i].Resign(ctx) }))
}

// callCounter counts calls, and those that renew many leases.
type callCounter struct {
	*http.Transport
	all, batches atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (c *callCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.all.Add(1)
	if strings.HasSuffix(r.URL.Path, wire.PathBatchRenew) {
		c.batches.Add(1)
	}
	return c.Transport.RoundTrip(r)
}
