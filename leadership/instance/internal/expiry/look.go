package expiry

import (
	"context"
	"errors"
	"sync"
	"time"

	"regent/leadership"
)

// Limits of looks.
const (
	maxLooks    = 16 // under way at once
	lookTimeout = 10 * time.Second
	maxFailed   = 8 // looks after one lease, until it is given up; with the pauses between them this takes more than a minute
	firstPause  = 500 * time.Millisecond
	maxPause    = 30 * time.Second
)

// Run looks after leases that have ended until ctx ends; then it waits for the looks that are under way, and returns ctx's error.
func (l *Lookout) Run(ctx context.Context) error {
	var looks sync.WaitGroup
	defer looks.Wait()
	slots := make(chan struct{}, maxLooks)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		t, err := l.next(ctx)
		if err != nil {
			return err
		}
		looks.Go(func() {
			defer func() { <-slots }()
			l.look(ctx, t)
		})
	}
}

// look has the end of a lease recorded, if the lease has ended.
func (l *Lookout) look(ctx context.Context, t *term) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	lease, err := l.expire(ctx, t.election)
	if !l.conclude(t, lease, err) {
		l.log.Warn("gave up recording that a lease has ended; the maintenance tick finds it", "election", t.election, "cause", err)
	}
}

// conclude says what a look has come to: the lease is done with, or looked after again. Not ok if it is given up.
func (l *Lookout) conclude(t *term, lease leadership.Lease, err error) (ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	unanswered := errors.Is(err, leadership.StoreUnavailable) || errors.Is(err, leadership.OutcomeUnknown)
	early := err == nil && lease.State == leadership.Vacant && lease.Revision == t.revision // it is over, but for the store's guard
	switch now := l.now(); {
	case l.terms[t.election] != t:
		return true // it was forgotten meanwhile
	case t.due > now:
		l.enqueue(t) // it was renewed meanwhile
		return true
	case (unanswered || early) && t.failed+1 < maxFailed:
		t.failed++
		t.due = now + pause(t.failed)
		l.enqueue(t)
		return true
	}
	delete(l.terms, t.election) // if it was renewed through another instance, that one keeps its end in mind
	return err == nil
}

// pause is how long to wait after so many looks that failed.
func pause(failed int) time.Duration { return min(firstPause<<(failed-1), maxPause) }
