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
	return callBatch(ctx, c, batch, ofRenewal, "renewals", call{
		name: "batch renew", path: wire.PathBatchRenew, mutates: wire.VerbBatchRenew.Row().Changes(), body: wire.NewRenewals(batch),
	})
}

// BatchCheckTokens checks up to leadership.MaxBatch tokens, at most one per election. The results
// are in the order of the checks.
func (c *Client) BatchCheckTokens(ctx context.Context, batch []leadership.TokenCheck) ([]leadership.Result, error) {
	return callBatch(ctx, c, batch, ofCheck, "checks", call{
		name: "batch check tokens", path: wire.PathBatchCheckTokens, body: wire.NewChecks(batch),
	})
}

// callBatch makes a call that returns one result for each request. If any result differs from what
// of(request) expects, the whole reply is refused.
func callBatch[T any](ctx context.Context, c *Client, batch []T, of func(T) expected, field string, k call) ([]leadership.Result, error) {
	var answer wire.Results
	k.method, k.answer = http.MethodPost, &answer
	if err := c.do(ctx, k); err != nil {
		return nil, err
	}
	if len(answer.Results) != len(batch) {
		return nil, misread(k.name, k.mutates, fmt.Errorf("%d results for %d %s", len(answer.Results), len(batch), field))
	}
	results := make([]leadership.Result, len(batch))
	for i, r := range answer.Results {
		var err error
		if results[i], err = result(r, field, i, of(batch[i])); err != nil {
			return nil, misread(k.name, k.mutates, err)
		}
	}
	return results, nil
}

// result converts the result at a place of the field, and checks that it answers the request.
func result(w wire.Result, field string, i int, x expected) (leadership.Result, error) {
	// JSON replaces invalid UTF-8, one character at a time
	if w.Election != x.election && w.Election != leadership.Election([]rune(x.election)) {
		return leadership.Result{}, fmt.Errorf("the result at %s is about election %s, not %q", wire.At(field, i), wire.Quote(string(w.Election)), x.election)
	}
	at := ""
	if w.Lease == nil {
		at = wire.At(field, i)
	}
	r, err := w.Leadership(at)
	if err == nil && r.Err == nil {
		err = x.match(r.Lease)
	}
	return r, err
}
