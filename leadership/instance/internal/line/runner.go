package line

import (
	"context"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

// runner asks the store in the name of a line.
type runner struct {
	q        *Queue
	election *view.Election
	line     *Line         // guarded by the hub's View
	wake     chan struct{} // of one: there is something to do sooner than it knows
	seating  seating
	seats    []*view.Election // those of an election that has some. So guarded, too
	parent   *view.Election   // to which the line listens, too; nil for none. So guarded, too
}

// run asks the store for one head after the other, until the line is empty.
func (r *runner) run() {
	for {
		gone, a, idle, over := r.turn()
		switch {
		case over:
			return
		case gone != "":
			r.withdraw(gone)
		case a != nil:
			r.carryOut(a)
		default:
			select {
			case <-time.After(idle):
			case <-r.wake:
			}
		}
	}
}

// turn asks the line what to do: to withdraw what the store has of a candidate that has gone, to
// make an attempt, or to wait. A line that is over is forgotten.
func (r *runner) turn() (gone leadership.CandidateID, a *Attempt, idle time.Duration, over bool) {
	r.q.c.Hub.View(func(_ *view.View, now time.Duration) {
		closed, ok := r.q.closed() != nil, false
		if gone, ok = r.line.Withdrawal(now, closed); ok {
			return
		}
		a, idle, over = r.line.Turn(now, closed)
		r.attend(over)
		if over {
			delete(r.q.lines, r.election.Name())
			r.q.common.View.Unwait(r.election, r.wake)
			for _, e := range r.seats {
				r.q.common.View.Unwait(e, r.wake)
			}
			r.q.end()
		}
	})
	return gone, a, idle, over
}

// attend lets the line listen to its parent while it waits for that. Call it from within View.
func (r *runner) attend(over bool) {
	want := r.line.Parent()
	if over {
		want = ""
	}
	if r.parent != nil && r.parent.Name() != want {
		r.q.common.View.Unwait(r.parent, r.wake)
		r.parent = nil
		r.line.Attend(nil)
	}
	if r.parent == nil && want != "" {
		r.parent = r.q.common.View.Wait(want, r.wake)
		r.line.Attend(r.parent)
	}
}

func (r *runner) withdraw(gone leadership.CandidateID) {
	err := r.q.withdraw(r.election.Name(), gone)
	r.q.c.Hub.View(func(_ *view.View, now time.Duration) { r.line.Withdrawn(gone, err, now, r.q.closed() != nil) })
}

// carryOut makes an attempt. If the answer is that a lease is held whose key the queue alone knows,
// it ends that lease.
func (r *runner) carryOut(a *Attempt) {
	a.Began = r.q.c.Hub.Now()
	by := a.Caller.Client().(*call)
	a.Request.InLine.Recheck, r.seating.Along = by.recheck, a.standbys
	o := r.ask(by.ctx, a.Request)
	if orphan, ok := r.finish(a, o); ok {
		if panicked := caught(func() { r.q.release(by.ctx, orphan) }); panicked != nil {
			o = Outcome{Panic: panicked}
		}
		r.finish(a, o)
	}
}

// finish hands the outcome to the line. If that shows a lease to release first, it returns that
// lease instead, once.
func (r *runner) finish(a *Attempt, o Outcome) (orphan leadership.LeaseRequest, ok bool) {
	r.q.c.Hub.View(func(_ *view.View, now time.Duration) {
		if o.Panic == nil {
			orphan, ok = r.line.Orphan(o.Err)
		}
		if !ok {
			r.line.Finish(a, o, now)
		}
	})
	return orphan, ok
}

// ask makes the call.
func (r *runner) ask(ctx context.Context, request leadership.AcquireRequest) (o Outcome) {
	if ctx.Err() != nil {
		return Outcome{Err: gone(ctx)}
	}
	bounded, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	request.InLine.Seats = &r.seating.Seating
	o.Panic = caught(func() { o.Grant, o.Err = r.q.c.Acquire(bounded, request) })
	return o
}

// caught returns what do panics with; nil if it does not.
func caught(do func()) (panicked any) {
	defer func() { panicked = recover() }()
	do()
	return nil
}
