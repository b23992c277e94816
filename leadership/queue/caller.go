package queue

import (
	"context"
	"time"

	"regent/leadership"
)

// caller is one call of Acquire that stands in line. Queue.mu guards it until it is answered.
type caller struct {
	ctx    context.Context
	called time.Duration

	place   *place // nil once it is answered
	leaving bool   // with the answer of the attempt that is under way for its place
	why     error  // it is leaving; nil if its wait is over

	answered chan struct{} // closed once what follows is set
	grant    *leadership.Grant
	err      error
	panicked any
}

// await waits for the caller's answer, and sees to it that there is one.
func (q *Queue) await(c *caller, wait time.Duration) (leadership.Grant, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-c.answered:
	case <-timer.C:
		q.leave(c, nil)
	case <-c.ctx.Done():
		q.leave(c, gone(c.ctx))
	case <-q.closing:
		q.leave(c, q.closed())
	case <-q.c.Hub.Done():
		q.leave(c, q.closed())
	}
	<-c.answered
	switch {
	case c.panicked != nil:
		panic(c.panicked)
	case c.grant == nil:
		return leadership.Grant{}, c.err
	}
	return *c.grant, nil
}

// leave answers a caller who does not wait any longer. If the store is being asked for its place, that attempt's end is its answer.
func (q *Queue) leave(c *caller, why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.place == nil {
		return
	}
	c.leaving, c.why = true, why
	if l := c.place.line; l.asking != c.place {
		l.dismiss(c)
	}
}

// granted answers with the lease of an attempt that began at the given moment. Whoever joined after it must not count the lease from its own
// call, for the lease may be older: so much less is left of it.
func (c *caller) granted(grant leadership.Grant, began time.Duration) {
	grant.Waited = began - c.called
	if grant.Waited < 0 {
		grant.Lease = aged(grant.Lease, -grant.Waited)
		grant.Waited = 0
	}
	c.grant = &grant
	c.done()
}

// refused answers with an error.
func (c *caller) refused(err error) {
	c.err = err
	c.done()
}

// panics lets the panic of an attempt be the caller's.
func (c *caller) panics(v any) {
	c.panicked = v
	c.done()
}

func (c *caller) done() {
	c.place = nil
	close(c.answered)
}

// aged is what is left of a lease after so much time.
func aged(l leadership.Lease, by time.Duration) leadership.Lease {
	l.ExpiresIn = max(l.ExpiresIn-by, 0)
	l.RenewIn = max(l.RenewIn-by, 0)
	l.LockedFor = max(l.LockedFor-by, 0)
	l.ReadAt = l.ReadAt.Add(by)
	return l
}
