// Package backoff waits between tries, with jitter, so that many instances do not try together; and
// it wakes waiting goroutines.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is a series of waits that double from Min to Max, each a quarter more or less.
type Backoff struct {
	Min, Max time.Duration

	tries int
}

// Next returns the next wait.
func (b *Backoff) Next() time.Duration {
	d := After(b.tries, b.Min, b.Max)
	b.tries++
	return Jitter(d)
}

// Reset starts the series again. Call it after a success.
func (b *Backoff) Reset() { b.tries = 0 }

// After returns the wait after a try, without jitter: least after try 0, then twice as long after
// each further one, up to most. Least is a minute at most.
func After(try int, least, most time.Duration) time.Duration {
	const enough = 16 // doublings; a minute doubled so often is 45 days
	return min(least<<min(try, enough), most)
}

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

// Signal wakes the reader of c, a channel of one, and does not block.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
