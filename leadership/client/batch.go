package client

import (
	"context"
	"fmt"
	"net/http"

	"regent/leadership"
	"regent/leadership/wire"
)

// BatchRenew renews up to leadership.MaxBatch leases, at most one per election. The results are in
// the order of the requests. The error is for a batch that failed as a whole. Tickets are as in
// Renew.
func (c *Client) BatchRenew(ctx context.Context, batch []leadership.LeaseRequest) ([]leadership.Result, error) {
	return c.batch(ctx, "renewals", each(batch, ofRenewal), call{
		name: "batch renew", path: wire.PathBatchRenew, mutates: wire.VerbBatchRenew.Row().Changes(), body: wire.NewRenewals(batch),
	})
}

// BatchCheckTokens checks up to leadership.MaxBatch tokens, at most one per election. The results
// are in the order of the checks.
func (c *Client) BatchCheckTokens(ctx context.Context, batch []leadership.TokenCheck) ([]leadership.Result, error) {
	return c.batch(ctx, "checks", each(batch, ofCheck), call{
		name: "batch check tokens", path: wire.PathBatchCheckTokens, body: wire.NewChecks(batch),
	})
}

// each returns what the result of each request must say.
func each[T any](batch []T, of func(T) expected) []expected {
	all := make([]expected, len(batch))
	for i, r := range batch {
		all[i] = of(r)
	}
	return all
}

// batch makes a call that returns one result for each request. If any result does not match its
// request, the whole reply is refused.
func (c *Client) batch(ctx context.Context, field string, all []expected, k call) ([]leadership.Result, error) {
	var answer wire.Results
	k.method, k.answer = http.MethodPost, &answer
	if err := c.do(ctx, k); err != nil {
		return nil, err
	}
	if len(answer.Results) != len(all) {
		return nil, misread(k.name, k.mutates, fmt.Errorf("%d results for %d %s", len(answer.Results), len(all), field))
	}
	results := make([]leadership.Result, len(all))
	for i, r := range answer.Results {
		var err error
		if results[i], err = result(r, wire.At(field, i), all[i]); err != nil {
			return nil, misread(k.name, k.mutates, err)
		}
	}
	return results, nil
}

// result converts one result and checks that it answers the request.
func result(w wire.Result, at string, x expected) (leadership.Result, error) {
	// JSON replaces invalid UTF-8, one character at a time
	sent := leadership.Election([]rune(x.election))
	if w.Election != sent {
		return leadership.Result{}, fmt.Errorf("the result at %s is about election %s, not %q", at, wire.Quote(string(w.Election)), x.election)
	}
	r, err := w.Leadership(at)
	if err == nil && r.Err == nil {
		err = x.match(r.Lease)
	}
	return r, err
}
