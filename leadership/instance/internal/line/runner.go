package line

import (
	"context"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
)

// runner asks the store in the name of a
type runner struct {
	q        *Queue
	election leadership.Election
	line     *Line         // guarded by Queue.mu
	wake     chan struct{} // there is something to do sooner than it knows

	events *hub.Listener
	doubts *hub.Listener // to no election: it hears only when the hub begins, or begins anew, or ceases to be live
	doubt  bool          // it has heard so since the runner listened last
}

// run asks the store for one head after the other, until nobody stands in line any more.
func (r *runner) run() {
	hub := r.q.c.Hub
	r.events, r.doubts = hub.Listen(r.election), hub.Listen("")
	defer r.events.Close()
	defer r.doubts.Close()
	r.tune(r.events.Newest().Revision, hub.Live())
	for {
		a, idle, over := r.turn()
		switch {
		case over:
			return
		case a != nil:
			r.carryOut(a)
		default:
			r.sleep(idle)
		}
		r.listen()
	}
}

func (r *runner) tune(newest leadership.Revision, live bool) {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	r.line.Tune(newest, live)
}

// turn asks the line what to do. A line that is over is forgotten.
func (r *runner) turn() (a *Attempt, idle time.Duration, over bool) {
	closed := r.q.closed() != nil
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	a, idle, over = r.line.Turn(r.q.c.Now(), closed)
	if over {
		delete(r.q.lines, r.election)
		r.q.end()
	}
	return a, idle, over
}

// carryOut makes an attempt.
func (r *runner) carryOut(a *Attempt) {
	a.Began = r.q.c.Now()
	o := r.ask(a.Caller.Client().(*caller).ctx, a.Request)
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	r.line.Finish(a, o, r.q.c.Now())
}

// ask makes the call. If the answer is that a lease is held whose key nobody was told, it ends that lease.
func (r *runner) ask(ctx context.Context, request leadership.AcquireRequest) (o Outcome) {
	if ctx.Err() != nil {
		return Outcome{Err: gone(ctx)}
	}
	defer func() {
		if v := recover(); v != nil {
			o = Outcome{Panic: v}
		}
	}()
	bounded, cancel := context.WithTimeout(ctx, r.q.c.Attempt)
	defer cancel()
	o.Grant, o.Err = r.q.c.Acquire(bounded, request)
	if orphan, ok := r.orphan(o.Err); ok {
		r.q.giveBack(ctx, orphan)
	}
	return o
}

func (r *runner) orphan(err error) (leadership.LeaseRequest, bool) {
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	return r.line.Orphan(err)
}

// sleep waits until something has happened, at most so long.
func (r *runner) sleep(idle time.Duration) {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.wake:
	case <-r.events.C():
	case <-r.doubts.C():
		r.doubt = true
	}
}

// listen tells the line what there is to be heard.
func (r *runner) listen() {
	newest, live := r.events.Newest(), r.q.c.Hub.Live()
	r.q.mu.Lock()
	defer r.q.mu.Unlock()
	r.line.Listen(newest, live, r.doubt, r.q.c.Now())
	r.doubt = false
}
