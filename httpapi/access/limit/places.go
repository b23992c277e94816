package limit

import (
	"context"
	"fmt"
	"time"

	"regent/leadership"
)

// places limits how many calls of a principal are in progress at the same time, and how many of all
// principals.
type places struct {
	own, all chan struct{}
	leave    func(error)
}

// newPlaces returns the places of a principal, which may take half of all.
func newPlaces(all chan struct{}) *places {
	own := make(chan struct{}, max(cap(all)/2, 1))
	return &places{own, all, func(error) {
		<-all
		<-own
	}}
}

// patience is how long a call waits for a place, of its principal or of all, before it is refused.
const patience = time.Second

// take blocks until a place is free, for at most patience at each of the two limits. leave gives
// the place back.
func (p *places) take(ctx context.Context, g *Gate) (leave func(error), err error) {
	if err := g.sit(ctx, p.own, "you have as many calls under way at this instance as one caller may; wait for their answers"); err != nil {
		return nil, err
	}
	if err := g.sit(ctx, p.all, "this instance has as many calls under way as it can bear; come again"); err != nil {
		<-p.own
		return nil, err
	}
	return p.leave, nil
}

func (g *Gate) sit(ctx context.Context, places chan<- struct{}, full string) error {
	select {
	case places <- struct{}{}:
		return nil
	default:
	}
	select {
	case places <- struct{}{}:
		return nil
	case <-time.After(patience):
		return g.refuse(ctx, false, patience, "%s", full)
	case <-ctx.Done():
		return fmt.Errorf("limit: %w: %w", leadership.StoreUnavailable, ctx.Err())
	}
}
