package line

import (
	"time"

	"regent/leadership"
)

// Caller is one call that stands in line.
type Caller struct {
	client Client
	called time.Duration

	place   *place // nil once it is answered
	leaving bool   // with the answer of the attempt that is under way for its place
	why     error  // it is leaving; nil if its wait is over
}

// Client is who called.
type Client interface {
	// Gone is why the client has gone; nil while it waits for the answer.
	Gone() error
	// Answered tells the answer: once, and perhaps in the middle of a call of the line, which it
	// must not call.
	Answered(Answer)
}

// Answer is what becomes of a call.
type Answer struct {
	Grant *leadership.Grant
	Err   error // without a grant
	Panic any   // of the attempt that was made for it, instead of either
}

// NewCaller returns a call that came at that moment.
func NewCaller(c Client, called time.Duration) *Caller { return &Caller{client: c, called: called} }

// Client is who called.
func (c *Caller) Client() Client { return c.client }

// granted answers with the lease of an attempt that began at the given moment. A caller that joined
// after it must not count the lease from its own call, for the lease may be older: so much less is
// left of it.
func (c *Caller) granted(grant leadership.Grant, began time.Duration) {
	grant.Waited = began - c.called
	if grant.Waited < 0 {
		grant.Lease = aged(grant.Lease, -grant.Waited)
		grant.Waited = 0
	}
	c.answered(Answer{Grant: &grant})
}

// refused answers with an error.
func (c *Caller) refused(err error) { c.answered(Answer{Err: err}) }

func (c *Caller) answered(a Answer) {
	c.place = nil
	c.client.Answered(a)
}

// aged returns the lease with its remaining time reduced by so much.
func aged(l leadership.Lease, by time.Duration) leadership.Lease {
	l.ExpiresIn = max(l.ExpiresIn-by, 0)
	l.RenewIn = max(l.RenewIn-by, 0)
	l.LockedFor = max(l.LockedFor-by, 0)
	l.ReadAt = l.ReadAt.Add(by)
	return l
}
