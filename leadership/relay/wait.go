package relay

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Waits after a failure.
const (
	minWait = time.Second
	maxWait = 30 * time.Second
)

// backoff is waits that double from minWait to maxWait. The zero backoff begins anew.
type backoff struct{ last time.Duration }

// next returns the next wait, a quarter more or less.
func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, minWait), maxWait)
	return jittered(b.last)
}

func jittered(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2+1) }

// pause is a time in which the announcer does not try.
type pause struct {
	mu    sync.Mutex // guards all below
	until time.Duration
	delay backoff
}

func (p *pause) on(now time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now < p.until
}

// begin begins a pause, unless there is one: what fails together has failed once.
func (p *pause) begin(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now >= p.until {
		p.until = now + p.delay.next()
	}
}

// end ends the pause, for the topic answers.
func (p *pause) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until, p.delay = 0, backoff{}
}

// sleep waits. Its error is ctx's.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// signal wakes whoever reads from a channel of one. It says whether that was news.
func signal(c chan<- struct{}) bool {
	select {
	case c <- struct{}{}:
		return true
	default:
		return false
	}
}

// lingering is ctx with its end put off by d.
func lingering(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		sleep(late, d)
		cancel()
	})
	return late, func() {
		stop()
		cancel()
	}
}
