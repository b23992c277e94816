package line

import (
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

// Caller is one call that stands in line.
type Caller struct {
	client Client
	called time.Duration

	place   *place // nil once it is answered
	leaving bool   // with the answer of the attempt that is under way for its place
	why     error  // it is leaving; nil if its wait is over
}

// Client is the driver's side of a call.
type Client interface {
	// Gone returns why the client has gone; nil while it waits for the answer.
	Gone() error
	// Answered delivers the answer: once, and perhaps during a call of the line, which it must not
	// call.
	Answered(Answer)
}

// Answer is the outcome of a call.
type Answer struct {
	Grant *leadership.Grant
	Err   error // without a grant
	Panic any   // of its attempt, instead of either
}

// NewCaller returns a call that came at that moment.
func NewCaller(c Client, called time.Duration) *Caller { return &Caller{client: c, called: called} }

// Client returns the client of the call.
func (c *Caller) Client() Client { return c.client }

// granted answers with the lease of an attempt that began at the given moment. For a caller that
// joined after that the lease may be older than its call, so its remaining time is reduced.
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
	l = view.Aged(l, by)
	l.ReadAt = l.ReadAt.Add(by)
	return l
}
