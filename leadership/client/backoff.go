package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"regent/leadership"
)

const (
	minPause = 100 * time.Millisecond
	maxPause = 10 * time.Second
	// maxRetryAfter is the longest Retry-After that is honoured.
	maxRetryAfter = time.Minute
)

// backoff computes the pause before the next try. It doubles after each failure and is random, so
// that clients that failed together do not return together.
type backoff struct{ failures int }

// after returns how long to wait after the error.
func (p *backoff) after(err error) time.Duration {
	if planned(err) {
		p.failures = 0
		return rand.N(minPause)
	}
	d := min(minPause<<min(p.failures, 10), maxPause)
	p.failures++
	return d/2 + rand.N(d/2) + min(retryAfter(err), maxRetryAfter)
}

// retryAfter returns the pause that the server asks for, or zero.
func retryAfter(err error) time.Duration {
	if refusal, ok := errors.AsType[*leadership.Error](err); ok {
		return refusal.RetryAfter
	}
	if reply, ok := errors.AsType[*ReplyError](err); ok {
		return reply.RetryAfter
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
