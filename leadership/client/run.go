package client

import (
	"context"
	"errors"
	"time"

	"regent/leadership"
)

// ErrOverran says that the function of a Run was still at work when the margin after its deadline was over too, and with it the lease: there may
// have been two leaders, and only the fencing token stood between them. Give it a shorter way to its end, or a longer Candidate.Margin.
var ErrOverran = errors.New("the leader's function returned only after its lease was over")

const (
	// releaseTimeout is what Run has for giving a lease back.
	releaseTimeout = 5 * time.Second
	// lateReleaseTimeout is what it has if the lease is over by its own clock: it may have been renewed by a call whose reply was lost.
	lateReleaseTimeout = time.Second
)

// Run leads once: it campaigns as Campaign does, calls lead, waits for it to return, and gives the lease back. It never gives it back before.
//
// The context of lead ends at the deadline at the latest, and when ctx ends; context.Cause says why, and lead then has to return, within the
// Candidate's Margin. Nobody renews any more from that moment, so that a lead which does not return blocks the others only until the lease has run out. Run
// waits for it even then, and says so in the log and by ErrOverran. If lead panics, so does Run, and the lease is left to run out.
//
// Run returns nil if lead returned nil while it led, or after ctx ended. Its errors are Campaign's, lead's, and, joined with it, ErrLost or ErrExpired
// if the lease was over before lead returned. To lead whenever possible, call Run again:
//
//	for ctx.Err() == nil {
//		if err := c.Run(ctx, "reports", lead); err != nil {
//			log.Print(err)
//		}
//	}
func (c *Client) Run(ctx context.Context, election leadership.Election, lead func(context.Context, *Lease) error) error {
	l, err := c.campaign(ctx, ctx, election, leadership.MaxWait)
	if err != nil {
		return err
	}
	defer l.cancel(errPanicked) // means nothing to a lease that has ended
	err = l.watched(lead)
	late := c.clock() >= l.end()
	cause, own := l.ending()

	timeout := releaseTimeout
	if own == ErrExpired {
		timeout = lateReleaseTimeout
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if err := l.Resign(release); err != nil && own != ErrExpired {
		c.logOf(l).Warn("the lease could not be given back; it runs out by itself", "reason", err)
	}
	if own != nil && own != ErrResigned {
		err = over(err, cause)
	}
	if late {
		err = errors.Join(l.because(ErrOverran, nil), err)
	}
	return err
}

// errPanicked ends the lease of a function that did not return.
var errPanicked = errors.New("the leader's function panicked")

// over is the error of a Run whose lease was over before lead returned err.
func over(err, cause error) error {
	if err == context.Canceled { // which alone says less than the cause
		return cause
	}
	return errors.Join(cause, err)
}

// watched calls the function, and says in the log when it has not returned by the deadline.
func (l *Lease) watched(lead func(context.Context, *Lease) error) error {
	returned := make(chan struct{})
	defer close(returned)
	go l.watch(returned)
	return lead(l.Context(), l)
}

// watch waits for the function to return, until the lease is over.
func (l *Lease) watch(returned <-chan struct{}) {
	select {
	case <-returned:
		return
	case <-l.ctx.Done():
	}
	for left := l.end() - l.client.clock(); left > 0; left = l.end() - l.client.clock() {
		timer := time.NewTimer(min(left, maxNap))
		select {
		case <-returned:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
	l.client.logOf(l).Error("the lease is over and its leader's function has not returned; waiting for it")
}
