package line

import (
	"context"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

// call is one call of Acquire that stands in line.
type call struct {
	ctx      context.Context
	runner   *runner
	recheck  func() error // leadership.InLine.Recheck
	standing *Caller      // guarded by the hub's View

	answered chan struct{} // closed once the answer is set
	answer   Answer
}

// Gone returns why the call is over for its caller.
func (c *call) Gone() error {
	if c.ctx.Err() != nil {
		return gone(c.ctx)
	}
	return nil
}

// Answered takes the answer.
func (c *call) Answered(a Answer) {
	c.answer = a
	close(c.answered)
}

// await waits for the caller's answer, and makes the caller leave when its wait is over.
func (q *Queue) await(c *call, wait time.Duration) (*leadership.Grant, error) {
	defer time.AfterFunc(wait, func() { q.leave(c, nil) }).Stop()
	select {
	case <-c.answered:
	case <-c.ctx.Done():
		q.leave(c, gone(c.ctx))
	case <-q.closing:
		q.leave(c, q.closed())
	case <-q.c.Hub.Done():
		q.leave(c, q.closed())
	}
	<-c.answered
	if c.answer.Panic != nil {
		panic(c.answer.Panic)
	}
	return c.answer.Grant, c.answer.Err
}

// leave answers a caller that stops waiting. If an attempt for its place is under way, the outcome
// of that is its answer.
func (q *Queue) leave(c *call, why error) {
	q.c.Hub.View(func(_ *view.View, now time.Duration) { c.runner.line.Leave(c.standing, why, now) })
}
