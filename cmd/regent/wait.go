package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
)

// forever is a wait of 292 years.
const forever time.Duration = math.MaxInt64

func parseWait(text string) (time.Duration, error) {
	if text == "forever" {
		return forever, nil
	}
	d, err := parseDuration(text, 0, 24*time.Hour)
	if err != nil {
		return 0, fmt.Errorf("%w, or forever", err)
	}
	return d, nil
}

// timedOut is the refusal of a candidate whose wait is over.
type timedOut struct{ error }

func (e timedOut) Unwrap() error { return e.error }

// acquireWithin stands in line until the candidate leads or the wait is over. A server lets nobody stand there for longer than
// leadership.MaxWait in one call; whoever comes again soon, with the same key, keeps the place. That takes a key from the start, and
// makes it safe to ask again when nobody knows what came of a call.
func (c *cli) acquireWithin(ctx context.Context, r leadership.AcquireRequest, wait time.Duration) error {
	server, err := c.connect()
	if err != nil {
		return err
	}
	drawn := r.Key == nil
	if drawn {
		r.Key = new(leadership.NewKey())
	}
	l := line{cli: c, server: server, end: time.Now().Add(wait)}
	grant, err := l.stand(ctx, r)
	if err != nil {
		return err
	}
	return c.printGrant(grant, drawn)
}

// line is a place in the line of an election.
type line struct {
	*cli
	server *client.Client
	end    time.Time // of the wait
	tries  int       // in a row that were answered before their time
	told   bool      // that the server does not answer
}

// stand asks until the candidate leads, the wait is over, or no other call would help.
func (l *line) stand(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	for {
		r.Wait = min(l.left(), leadership.MaxWait)
		sent := time.Now()
		grant, err := l.try(ctx, r)
		held := errors.Is(err, leadership.LeaseHeld)
		switch {
		case err == nil, !held && !passes(err), ctx.Err() != nil:
			return grant, err
		case held && l.left() == 0:
			return grant, timedOut{err}
		case l.left() == 0:
			return grant, err
		}
		l.tell(err, held)
		l.pause(ctx, time.Since(sent) >= r.Wait)
	}
}

// try is one call, with all the time that it may take beside the wait.
func (l *line) try(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout+r.Wait)
	defer cancel()
	return l.server.Acquire(ctx, r)
}

// left is what is left of the wait.
func (l *line) left() time.Duration {
	return max(time.Until(l.end), 0).Round(time.Millisecond)
}

// passes says whether the same call may be answered otherwise before long.
func passes(err error) bool {
	return unreachable(err) || errors.Is(err, wire.RateLimited)
}

// tell tells a person once that the server does not answer, until it does.
func (l *line) tell(err error, held bool) {
	if !held && !l.told {
		l.notice("still waiting", err)
	}
	l.told = !held
}

const (
	minPause = 100 * time.Millisecond
	maxPause = 4 * time.Second // a place in the line is kept for 5 s
)

// pause waits before the next try: not at all after a call that has taken its time, and longer and longer otherwise.
func (l *line) pause(ctx context.Context, patient bool) {
	if patient {
		l.tries = 0
		return
	}
	d := min(minPause<<min(l.tries, 10), maxPause)
	l.tries++
	timer := time.NewTimer(min(d/2+rand.N(d/2), l.left()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
