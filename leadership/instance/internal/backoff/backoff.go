// Package backoff waits between tries, with jitter, so that many instances do not try together.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is a series of waits that double from Min to Max, each a quarter more or less.
type Backoff struct {
	Min, Max time.Duration

	last time.Duration
}

// Next returns the next wait.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(2*b.last, b.Min), b.Max)
	return Jitter(b.last)
}

// Reset starts the series again. Call it after a success.
func (b *Backoff) Reset() { b.last = 0 }

// Jitter returns d, a quarter more or less.
func Jitter(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2+1) }

// Sleep waits for d, or until ctx ends; then it returns the error of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
