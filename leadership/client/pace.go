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
	// maxRetryAfter is the longest time for which a server is left alone because it says so.
	maxRetryAfter = time.Minute
)

// pace says when to try again: twice as late after each failure, and by chance, so that those who failed together do not come together.
type pace struct{ failures int }

// after returns how long to wait after the error.
func (p *pace) after(err error) time.Duration {
	if planned(err) {
		p.failures = 0
		return rand.N(minPause)
	}
	d := min(minPause<<min(p.failures, 10), maxPause)
	p.failures++
	return d/2 + rand.N(d/2) + min(retryAfter(err), maxRetryAfter)
}

// retryAfter is when the server wants to be asked again; zero if it does not say.
func retryAfter(err error) time.Duration {
	var refusal *leadership.Error
	var reply *ReplyError
	switch {
	case errors.As(err, &refusal):
		return refusal.RetryAfter
	case errors.As(err, &reply):
		return reply.RetryAfter
	}
	return 0
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
