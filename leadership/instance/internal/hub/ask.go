package hub

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"regent/leadership"
)

const (
	// askTimeout bounds one look into the history.
	askTimeout = 10 * time.Second
	// maxAsks limits concurrent looks: when the hub becomes live, one is due for each watched
	// election.
	maxAsks = 64
)

// askHistory calls read, which looks into the history, with a timeout and a limit on concurrent
// calls. Errors: the hub's cause; ctx's; StoreUnavailable if there is no answer in time; those of
// read.
func (h *Hub) askHistory(ctx context.Context, read func(context.Context) error) error {
	select {
	case h.asks <- struct{}{}:
		defer func() { <-h.asks }()
	case <-h.life.Done():
		return h.Cause()
	case <-ctx.Done():
		return ctx.Err()
	}
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	defer context.AfterFunc(h.life, cancel)()
	err := read(asking)
	switch {
	case err == nil:
		return nil
	case h.over(ctx) != nil:
		return h.over(ctx)
	case asking.Err() != nil: // not ctx's own end
		return fmt.Errorf("hub: %w: the history was not read within %v", leadership.StoreUnavailable, askTimeout)
	}
	return err
}

// over returns why a wait is over: the hub's cause, or ctx's error; nil if there is neither.
func (h *Hub) over(ctx context.Context) error { return cmp.Or(h.Cause(), ctx.Err()) }

// wait blocks until c is closed or, unless due is zero, until due. It returns the hub's cause or
// ctx's error if they come first.
func (h *Hub) wait(ctx context.Context, c <-chan struct{}, due time.Time) error {
	if err := h.over(ctx); err != nil {
		return err
	}
	var timeout <-chan time.Time
	if !due.IsZero() {
		timeout = time.After(time.Until(due))
	}
	select {
	case <-c:
		return nil
	case <-timeout:
		return nil
	case <-h.life.Done():
	case <-ctx.Done():
	}
	return h.over(ctx)
}
