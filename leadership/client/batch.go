package client

import (
	"context"
	"fmt"
	"net/http"

	"regent/httpapi/wire"
	"regent/leadership"
)

// BatchRenew renews up to leadership.MaxBatch leases, no election twice. The results stand in the order of the requests; the error is for
// a batch that failed as a whole.
func (c *Client) BatchRenew(ctx context.Context, batch []leadership.LeaseRequest) ([]leadership.Result, error) {
	return c.batch(ctx, "renewals", len(batch), call{
		name: "batch renew", path: wire.PathBatchRenew, mutates: true, body: wire.NewRenewals(batch),
	})
}

// BatchCheckTokens checks up to leadership.MaxBatch tokens, no election twice. The results stand in the order of the checks.
func (c *Client) BatchCheckTokens(ctx context.Context, batch []leadership.TokenCheck) ([]leadership.Result, error) {
	return c.batch(ctx, "checks", len(batch), call{
		name: "batch check tokens", path: wire.PathBatchCheckTokens, body: wire.NewChecks(batch),
	})
}

func (c *Client) batch(ctx context.Context, field string, n int, k call) ([]leadership.Result, error) {
	var answer wire.Results
	k.method, k.answer = http.MethodPost, &answer
	if err := c.do(ctx, k); err != nil {
		return nil, err
	}
	if len(answer.Results) != n {
		return nil, misread(k.name, k.mutates, fmt.Errorf("%d results for %d %s", len(answer.Results), n, field))
	}
	results := make([]leadership.Result, n)
	for i, r := range answer.Results {
		var err error
		if results[i], err = r.Leadership(wire.At(field, i)); err != nil {
			return nil, misread(k.name, k.mutates, err)
		}
	}
	return results, nil
}
