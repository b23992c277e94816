package limit

import (
	"context"
	"fmt"
	"time"

	"regent/leadership"
)

// places are for calls that are under way. Whoever finds none free waits a while.
type places chan struct{}

func newPlaces(n int) places {
	if n == 0 {
		n = defaultPlaces
	}
	return make(places, n)
}

// patience is for how long a call waits for a place. Who would wait for longer is better told to come again.
const patience = time.Second

// take waits for a place. over gives it back.
func (p places) take(ctx context.Context, s *Service) (over func(), err error) {
	over = func() { <-p }
	select {
	case p <- struct{}{}:
		return over, nil
	default:
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case p <- struct{}{}:
		return over, nil
	case <-timer.C:
		return nil, s.refuse(ctx, false, patience, "this instance has as many calls under way as it can bear; come again")
	case <-ctx.Done():
		return nil, fmt.Errorf("limit: %w: %w", leadership.StoreUnavailable, ctx.Err())
	}
}
