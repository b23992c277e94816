package client

import (
	"context"
	"errors"
	"time"

	"regent/leadership"
)

// ErrOverran says that the function passed to Run was still running when its lease ended, a margin
// after its deadline. There may have been two leaders, and only the fencing token protected. Make
// the function return faster, or raise Candidate.Margin.
var ErrOverran = errors.New("the leader's function returned only after its lease was over")

const (
	// releaseTimeout limits the release at the end of Run.
	releaseTimeout = 5 * time.Second
	// lateReleaseTimeout is the limit if the lease is over by its own clock: a renewal whose reply
	// was lost may have extended it.
	lateReleaseTimeout = time.Second
)

// Run leads once: it campaigns as Campaign does, calls lead, waits for it to return, and then
// releases the lease, with the outcome done or, if lead returned an error while it led, failed;
// stopped if ctx or the lease had ended. It never releases the lease before.
//
// The context of lead ends at the deadline at the latest, and soon after ctx ends; context.Cause
// says why. lead must then return within the Candidate's Margin. From that moment the lease is not
// renewed, so a lead that does not return blocks other candidates only until the lease expires. Run
// waits for it even then, and reports it in the log and as ErrOverran. If lead panics, so does Run,
// and the lease is left to expire.
//
// With Candidate.AwaitFollowers it calls lead only once that many members follow the new token. If
// too few do within the duration of the lease, it releases the lease, so that another candidate may
// try, and returns ErrNotFollowed.
//
// When ctx ends, Run first hands over, as Lease.HandOver does, to the named successor or to the
// best waiting candidate, so that the successor's Config.OnSuccession can prepare while lead still
// works. The context of lead ends once that candidate is ready, after 3 s or half of
// Candidate.HandOverWithin at the latest; after one call if no candidate waits or the server knows
// no hand-over. The lease then passes to the candidate if it is ready, and is released otherwise.
// If the candidates have no OnSuccession, they are ready at once, and a release is as fast:
// NoHandOver saves two calls.
//
// So Run returns within 8 s of the end of ctx, plus the time that lead takes to return: 3 s for the
// hand-over, and 5 s for the release if the server does not answer. That fits into the 10 s that
// Cloud Run leaves after SIGTERM, if lead returns within the default Margin.
//
// Run returns nil if lead returned nil while it led, or after ctx ended. Its errors are Campaign's,
// lead's and, joined with it, ErrLost, ErrExpired or ErrOrphaned if the lease was over before lead
// returned. To lead whenever possible, call Run again:
//
//	for ctx.Err() == nil {
//		if err := c.Run(ctx, "reports", lead); err != nil {
//			log.Print(err)
//		}
//	}
func (c *Client) Run(ctx context.Context, election leadership.Election, lead func(context.Context, *Lease) error) error {
	within := ctx
	if c.candidate.HandOverWithin != NoHandOver {
		within = context.WithoutCancel(ctx)
	}
	l, err := c.campaign(ctx, within, election, leadership.MaxWait)
	if err != nil {
		return err
	}
	defer l.cancel(errPanicked) // no effect on a lease that has ended
	if err = l.awaitFollowers(ctx); err == nil {
		handedOver := l.handOverAtEnd(ctx)
		err = l.callLead(lead)
		handedOver()
	}
	outcome, late := l.outcomeOf(ctx, err), c.clock() >= l.end()
	cause, own := l.ending()

	timeout := releaseTimeout
	if own == ErrExpired {
		timeout = lateReleaseTimeout
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if err := l.Finish(release, outcome, ""); err != nil && own != ErrExpired {
		c.logOf(l).Warn("the lease could not be released; it will expire", "reason", err)
	}
	if own != nil && own != ErrResigned {
		err = over(err, cause)
	}
	if late {
		err = errors.Join(about(l.named(), ErrOverran), err)
	}
	return err
}

// errPanicked ends the lease of a leader's function, or of an OnPromotion, that did not return.
var errPanicked = errors.New("the leader's function panicked")

// over returns the error of a Run whose lease was over before lead returned err.
func over(err, cause error) error {
	if err == context.Canceled || err == cause { // says no more than the cause
		return cause
	}
	return errors.Join(cause, err)
}

// callLead calls the function, and logs if it has not returned by the deadline.
func (l *Lease) callLead(lead func(context.Context, *Lease) error) error {
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
		select {
		case <-returned:
			return
		case <-time.After(min(left, maxSleep)):
		}
	}
	l.client.logOf(l).Error("the lease is over but the leader's function has not returned; waiting for it")
}
