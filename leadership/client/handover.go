package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"regent/leadership"
)

// HandOver hands the term over to another candidate, in two phases. It names the successor, which
// then loads what it needs, and blocks until that is ready; the leader goes on meanwhile, and the
// lease is renewed. When it returns nil, stop everything that acts as leader and end the term as
// usual: by returning from Run's function, or by Resign. The lease then passes to the successor
// without a vacancy. If to is "", the successor is the best candidate that waits in line.
//
// From the first call on the term ends: Candidate.HandOverWithin after it at the latest, 0 for
// leadership.DefaultWithin, but not before the end that the lease had. HandOver waits for half of
// that time and leaves the other half for stopping.
//
// Errors: leadership.NotEligible, if no candidate waits or an operator has assigned the election to
// another one; then the term goes on. leadership.NotReady, if the successor was not ready in time:
// end the work all the same; the lease passes to the successor if it is ready by then, and is
// released otherwise. leadership.LeaseHeld, with the order that bars the successor. The cause, if
// the lease or ctx ended before.
func (l *Lease) HandOver(ctx context.Context, to leadership.CandidateID) error {
	return l.handOverTo(ctx, to, max(l.client.candidate.HandOverWithin, 0))
}

func (l *Lease) handOverTo(ctx context.Context, to leadership.CandidateID, within time.Duration) error {
	lease, err := persist(ctx, l, func(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
		l.mayYield()
		return l.client.Do(ctx, leadership.HandOver{LeaseRequest: r, To: to, Within: within})
	})
	if err != nil {
		return err
	}
	l.client.logOf(l).Info("handing over", "to", lease.Succession.To, "left", lease.Succession.Left)
	l.hear(lease.Revision, func(leadership.Succession) leadership.Succession { return lease.Succession })
	return l.awaitReady(ctx, lease.Succession.Left/2)
}

// awaitReady blocks until the successor is ready, for at most patience.
func (l *Lease) awaitReady(ctx context.Context, patience time.Duration) error {
	ctx, cancel := l.during(ctx)
	defer cancel()
	late := errors.New("the successor is not ready in time")
	ctx, stop := context.WithTimeoutCause(ctx, patience, late)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() { l.watchSuccession(ctx) })
	for {
		now, changed := l.succeeded()
		if now.Ready {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if cause := context.Cause(ctx); cause != late {
				return about(l.named(), cause)
			}
			return about(l.named(), &leadership.Error{Code: leadership.NotReady, Detail: fmt.Sprintf(
				"the successor %q is not ready after %v, and the term ends; stop, and end the work", now.To, patience)})
		}
	}
}

// watchSuccession hears of the successor from the election's events, which come sooner than the
// answers to renewals. If they cannot be watched, the answers must do.
func (l *Lease) watchSuccession(ctx context.Context) {
	for news, err := range l.client.Watch(ctx, WatchRequest{Election: l.Election()}) {
		switch e := news.Event; {
		case err != nil && ctx.Err() == nil:
			l.client.logOf(l).Debug("the leader hears of its successor only when it renews", "reason", err)
		case e != nil && e.LeaderID == l.CandidateID():
			l.hear(e.Revision, func(s leadership.Succession) leadership.Succession { return successionAfter(s, *e) })
		case news.Lease != nil && news.Lease.LeaderID == l.CandidateID():
			l.hear(news.Lease.Revision, func(leadership.Succession) leadership.Succession { return news.Lease.Succession })
		}
	}
}

// successionAfter returns the hand-over of a term after an event.
func successionAfter(s leadership.Succession, e leadership.Event) leadership.Succession {
	detail := e.ReadDetail()
	to := detail.To
	if e.Type == leadership.EventAssigned {
		to = detail.CandidateID
	}
	switch e.Type {
	case leadership.EventHandingOver, leadership.EventAssigned:
		if to == "" || to == e.LeaderID || to == s.To {
			return s
		}
		s = leadership.Succession{To: to, Since: e.At}
		if !detail.EndsBy.IsZero() {
			s.Left = max(detail.EndsBy.Sub(e.At), 0) // both by the store's clock
		}
		return s
	case leadership.EventReady:
		s.To, s.Ready = detail.CandidateID, true
		return s
	case leadership.EventYielded:
		s.To, s.Ready, s.Yielded = to, true, true
		return s
	case leadership.EventGoesOn, leadership.EventAcquired:
		return leadership.Succession{}
	}
	if e.LeaderID == "" {
		return leadership.Succession{}
	}
	return s
}

// handOver is the hand-over of a term, as far as the leader has heard of it.
type handOver struct {
	now     leadership.Succession
	at      leadership.Revision // of now
	may     bool                // the leader has named a successor, or may have
	changed chan struct{}       // closed at the next change; nil if nothing waits for it
}

// newer reports whether the hand-over now, heard of at revision at, replaces the one heard of at
// revision known. At the same revision an empty one does not: an answer that was given without a
// read of the election says nothing about the hand-over.
func newer(at, known leadership.Revision, now leadership.Succession) bool {
	return at > known || at == known && now.To != ""
}

// hear applies a change of the hand-over that was heard of at a revision.
func (l *Lease) hear(at leadership.Revision, change func(leadership.Succession) leadership.Succession) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := &l.handOver
	now := change(h.now)
	if !newer(at, h.at, now) {
		return
	}
	h.now, h.at = now, at
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// succeeded returns the present state of the hand-over, and a channel that is closed when it
// changes.
func (l *Lease) succeeded() (now leadership.Succession, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.handOver.changed == nil {
		l.handOver.changed = make(chan struct{})
	}
	return l.handOver.now, l.handOver.changed
}

// Succession returns the hand-over of the term as far as the leader has heard of it: begun by
// itself, by an operator, or by a better candidate. To is empty if there is none. Left is always 0:
// see EndsBy.
func (l *Lease) Succession() leadership.Succession {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.handOver.now
	now.Left = 0
	return now
}

// mayYield notes that the server may know of a successor from now on.
func (l *Lease) mayYield() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handOver.may = true
}

// yields reports whether the term may end with a yield.
func (l *Lease) yields() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.handOver.may || l.handOver.now.To != ""
}

// giveUp yields to the successor if one is ready, and releases the lease otherwise. The server
// decides: a yield that it refuses has changed nothing.
func (l *Lease) giveUp(ctx context.Context, r leadership.LeaseRequest) error {
	return l.giveUpBy(ctx, r, released)
}

// giveUpBy is giveUp with another command for the release. If the server refuses that command, the
// lease is released by a plain one.
func (l *Lease) giveUpBy(ctx context.Context, r leadership.LeaseRequest, end func(leadership.LeaseRequest) leadership.Command) error {
	if l.yields() {
		err := l.client.release(ctx, r, yielded)
		switch {
		case err == nil:
			l.client.logOf(l).Info("yielded")
			return nil
		case errors.Is(err, leadership.LeaseLost), transient(err), ctx.Err() != nil:
			return err
		}
	}
	err := l.client.release(ctx, r, end)
	if !errors.Is(err, leadership.InvalidArgument) {
		return err
	}
	l.client.logOf(l).Warn("the server takes no outcome; the lease is released without it", "reason", err)
	return l.client.release(ctx, r, released)
}

// withinAtEnd is the default of Candidate.HandOverWithin at the end of Run's context. The leader
// waits for half of that: it leaves 7 s of the 10 s that Cloud Run gives after SIGTERM.
const withinAtEnd = 6 * time.Second

// handOverAtEnd hands over when ctx ends, for as long as the Candidate says, and only then ends the
// lease. Call stop once, when the leader's function has returned.
func (l *Lease) handOverAtEnd(ctx context.Context) (stop func()) {
	within := cmp.Or(l.client.candidate.HandOverWithin, withinAtEnd)
	if within == NoHandOver {
		return func() {}
	}
	handing, cancel := context.WithCancel(l.Context())
	done := make(chan struct{})
	unused := context.AfterFunc(ctx, func() {
		defer close(done)
		handing, cancel := context.WithTimeout(handing, within/2)
		defer cancel()
		err := l.handOverTo(handing, l.Succession().To, within) // to the named successor, if there is one
		switch log := l.client.logOf(l); {
		case errors.Is(err, leadership.NotEligible):
			log.Debug("there is no successor; the lease will be released")
		case err != nil && l.Valid():
			log.Warn("the lease could not be handed over yet; it will be released unless the successor is ready", "reason", err)
		}
		l.cancel(context.Cause(ctx))
	})
	return func() {
		cancel()
		if !unused() {
			<-done
		}
	}
}

// during returns a context that ends with ctx and with the lease.
func (l *Lease) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	return ctx, func() {
		unhook()
		cancel(nil)
	}
}

// persist makes a call in the leader's name, and repeats it after errors that may pass, until ctx
// or the lease ends. If it returns leadership.OutcomeUnknown, the call may have been carried out.
// If the answer says that the lease is lost, persist ends the lease.
func persist[T any](ctx context.Context, l *Lease, call func(context.Context, leadership.LeaseRequest) (T, error)) (answer T, err error) {
	ctx, cancel := l.during(ctx)
	defer cancel()
	for p := (backoff{}); ; sleep(ctx, p.after(err)) {
		r := l.named()
		switch last := err; {
		case !l.Valid():
			cause, _ := l.ending()
			return answer, joined(cause, last)
		case ctx.Err() != nil:
			return answer, about(r, joined(context.Cause(ctx), last))
		}
		if answer, err = call(ctx, r); err == nil {
			return answer, nil
		}
		_, epoch := epochOf(err, r)
		switch stale := errors.Is(err, leadership.TokenStale) && l.Token() > r.Token; {
		case epoch, stale, transient(err): // the next renewal brings the token of a new epoch
		case errors.Is(err, leadership.LeaseLost):
			l.lose(err)
			return answer, about(r, err)
		default:
			return answer, about(r, err)
		}
	}
}

// joined adds the error of the last call, if there was one, to the reason for not retrying.
func joined(reason, last error) error {
	if last == nil {
		return reason
	}
	return fmt.Errorf("%w: %w", reason, last)
}
