package limit

import (
	"context"
	"fmt"
	"time"

	"regent/leadership"
)

// places bound how many calls are under way at the same time.
type places struct {
	taken chan struct{}
	leave func(error)
}

func newPlaces(n int) *places {
	taken := make(chan struct{}, n)
	return &places{taken, func(error) { <-taken }}
}

// patience is how long a call waits for a place before it is refused.
const patience = time.Second

// take blocks until there is a place, for patience at most. leave gives it back.
func (p *places) take(ctx context.Context, g *Gate) (leave func(error), err error) {
	select {
	case p.taken <- struct{}{}:
		return p.leave, nil
	default:
	}
	select {
	case p.taken <- struct{}{}:
		return p.leave, nil
	case <-time.After(patience):
		return nil, g.refuse(ctx, false, patience, "this instance has as many calls under way as it can bear; come again")
	case <-ctx.Done():
		return nil, fmt.Errorf("limit: %w: %w", leadership.StoreUnavailable, ctx.Err())
	}
}
