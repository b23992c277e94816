package simulation

import (
	"context"
	"errors"
	"time"

	"regent/leadership"
	"regent/leadership/instance/instancetest"
	"regent/leadership/service"
)

// instance is one process of the service: the real Service on the store, the real view of the
// elections, and the real lines.
type instance struct {
	s       *simulation
	number  int
	clock   clock
	store   *handle
	service *service.Service
	view    *instancetest.View
	common  *instancetest.Lines
	lines   map[leadership.Election]*queue
	newest  map[leadership.Election]leadership.Revision // that it heard
	shown   map[leadership.Election]leadership.Revision // the newest that a reader was shown, or that was heard
	timer   int                                         // the number of the valid timer for the view's next look
	life    int                                         // the number of the present incarnation
	stalled time.Duration                               // until when nothing happens in it
}

func (s *simulation) newInstance(number int) *instance {
	i := &instance{s: s, number: number, clock: s.clock()}
	i.clock.rate = max(min(i.clock.rate, exact+exact/leadership.Drift), exact-exact/leadership.Drift) // what was waited is by its clock
	i.begin()
	return i
}

// begin is a start of the process, with nothing that an earlier one knew.
func (i *instance) begin() {
	s := i.s
	i.life++
	i.store = &handle{data: s.data, seen: make(map[leadership.Election]int)}
	i.service = service.New(i.store, publisher{i})
	i.service.OneByOne()
	i.view = instancetest.NewView(instancetest.ViewConfig{Expiry: cacheExpiry, Size: 2, Jitter: s.w.upTo, Live: true})
	i.common = &instancetest.Lines{Instance: uint32(i.number) + 1, Jitter: s.w.upTo, Key: s.key, View: i.view, Present: i.present}
	i.lines = make(map[leadership.Election]*queue)
	i.newest = make(map[leadership.Election]leadership.Revision)
	i.shown = make(map[leadership.Election]leadership.Revision)
}

// present reports whether the member stands in line at this instance: what instances tell each
// other of members is not simulated.
func (i *instance) present(e leadership.Election, member leadership.CandidateID) bool {
	q, ok := i.lines[e]
	return ok && q.waiting[member] > 0
}

func (i *instance) now() time.Duration { return i.clock.at(i.s.w.now) }

// alive returns a function that reports whether the present incarnation still lives.
func (i *instance) alive() func() bool {
	life := i.life
	return func() bool { return i.life == life }
}

// does lets something happen in the process: now, or when it resumes; not if it crashes before.
func (i *instance) does(do func()) {
	alive, w := i.alive(), i.s.w
	if i.stalled <= w.now {
		do()
		return
	}
	w.at(i.stalled, func() {
		if alive() {
			i.does(do)
		}
	})
}

// call makes a call of the service, for a request of that id if it has one.
func (i *instance) call(id string, do func(context.Context)) {
	o := incarnation{i, i.life}
	if id == "" {
		i.s.w.start(o, do)
		return
	}
	i.s.w.start(o, func(ctx context.Context) { do(leadership.WithRequestID(ctx, id)) })
}

// serve carries out a command, and learns what its answer shows.
func (i *instance) serve(id string, command leadership.Command, answer func(leadership.Lease, error)) {
	i.call(id, func(ctx context.Context) {
		asked := i.now()
		l, err := i.service.Do(ctx, command)
		if err == nil && i.ours(ctx) {
			i.learn(l, asked)
		}
		answer(l, err)
	})
}

// incarnation is an instance until it crashes.
type incarnation struct {
	*instance
	life int
}

// Alive implements owner.
func (i incarnation) Alive() bool { return i.instance.life == i.life }

// Stalled implements owner.
func (i incarnation) Stalled() time.Duration {
	if !i.Alive() {
		return 0
	}
	return max(i.stalled-i.s.w.now, 0)
}

// learn takes an answer of the store to a read that began at that moment.
func (i *instance) learn(l leadership.Lease, asked time.Duration) {
	i.learnt(l.Election, i.view.Learn(&l, instancetest.Committed, asked, i.now()))
}

// learnt tells a line of news, and schedules the view's next look.
func (i *instance) learnt(e leadership.Election, news bool) {
	if q, ok := i.lines[e]; ok && news {
		q.wake()
	}
	if i.view.Sooner() {
		i.lookAfter(0)
	}
}

// lookAfter schedules the view's next look, in place of the earlier schedule.
func (i *instance) lookAfter(d time.Duration) {
	i.timer++
	timer, alive := i.timer, i.alive()
	i.s.w.after(i.clock.until(d), func() {
		if alive() && timer == i.timer {
			i.does(i.look)
		}
	})
}

// look does what the view wants, as package hub does. There are no watchers, so the view wants only
// one thing.
func (i *instance) look() {
	for {
		t, at, ok := i.view.Next(i.now())
		if !ok {
			i.lookAfter(min(at-i.now(), time.Hour))
			return
		}
		i.call("", func(ctx context.Context) {
			asked := i.now()
			l, err := i.service.Expire(ctx, t.Election)
			if !i.ours(ctx) {
				return
			}
			i.does(func() {
				news, _ := i.view.Expired(t, l, err, asked, i.now())
				i.learnt(t.Election, news)
			})
		})
	}
}

// hear takes an event, from itself or another.
func (i *instance) hear(e leadership.Event) {
	i.s.truth.heard(e, i.s.data.row(e.Election).events)
	i.newest[e.Election] = max(i.newest[e.Election], e.Revision)
	i.shown[e.Election] = max(i.shown[e.Election], e.Revision)
	if q, ok := i.lines[e.Election]; i.view.Heard(e, i.now()) && ok {
		q.drive()
	}
	i.learnt(e.Election, false)
}

// setLive sets whether the instance hears all events.
func (i *instance) setLive(live bool) {
	i.view.SetLive(live, i.now())
	for _, e := range i.s.names {
		if q, ok := i.lines[e]; ok {
			q.drive()
		}
	}
}

// queue drives a line, as Queue of package line does.
type queue struct {
	i        *instance
	election leadership.Election
	line     *instancetest.Line
	view     *instancetest.Election
	asking   bool
	timer    int                            // the number of the one that counts
	waiting  map[leadership.CandidateID]int // how many calls of each
}

// join puts a caller in line.
func (i *instance) join(c *instancetest.Caller, r leadership.AcquireRequest) {
	q, ok := i.lines[r.Election]
	if !ok {
		q = &queue{i: i, election: r.Election, waiting: make(map[leadership.CandidateID]int)}
	}
	c.Client().(*caller).queue = q
	q.waiting[r.CandidateID]++
	if ok {
		q.line.Join(c, r, i.now())
		return
	}
	q.view = i.view.Wait(r.Election, nil)
	q.line = instancetest.NewLine(i.common, q.view, q.wake, c, r, i.now())
	i.lines[r.Election] = q
	q.drive()
}

// owns reports whether the request may be the present leader's own.
func (q *queue) owns(r leadership.AcquireRequest) bool {
	_, owns := q.line.Owns(r, q.i.now())
	return owns
}

// wake drives the line soon: it is called from within it.
func (q *queue) wake() { q.plan(0) }

func (q *queue) plan(idle time.Duration) {
	q.timer++
	timer, alive := q.timer, q.i.alive()
	q.i.s.w.after(idle, func() {
		if alive() && timer == q.timer {
			q.i.does(q.drive)
		}
	})
}

// drive does what the line wants.
func (q *queue) drive() {
	if q.asking || q.i.lines[q.election] != q {
		return
	}
	if gone, ok := q.line.Withdrawal(q.i.now(), false); ok {
		q.asking = true
		q.i.call("", func(ctx context.Context) { q.withdraw(ctx, gone) })
		return
	}
	a, idle, over := q.line.Turn(q.i.now(), false)
	switch {
	case over:
		delete(q.i.lines, q.election)
		q.i.view.Unwait(q.view, nil)
	case a != nil:
		q.asking = true
		q.i.call(a.Caller.Client().(*caller).id, func(ctx context.Context) { q.attempt(ctx, a) })
	default:
		q.plan(q.i.clock.until(idle))
	}
}

// withdraw takes back what the store has of a candidate that has gone.
func (q *queue) withdraw(ctx context.Context, gone leadership.CandidateID) {
	alive, asked := q.i.alive(), q.i.now()
	l, err := q.i.service.Do(ctx, leadership.Withdraw{Election: q.election, CandidateID: gone, Instance: q.i.common.Instance})
	if !alive() {
		return
	}
	q.i.does(func() {
		q.asking = false
		q.line.Withdrawn(gone, err, q.i.now(), false)
		if err == nil {
			q.i.learnt(q.election, q.i.view.Learn(&l, instancetest.Read, asked, q.i.now()))
		}
		q.drive()
	})
}

// hangUp ends a caller's connection at the worst moments: when the outcome of its attempt is
// unknown, and when it was granted the lease.
func (q *queue) hangUp(c *caller, err error) {
	f := &q.i.s.plan.faults
	if errors.Is(err, leadership.OutcomeUnknown) && q.i.s.w.chance(0.3) || err == nil && q.i.s.w.chance(f.cut/10) {
		c.agent.hung = q.i.s.w.now
	}
}

// attempt asks the store.
func (q *queue) attempt(ctx context.Context, a *instancetest.Attempt) {
	alive := q.i.alive()
	a.Began = q.i.now()
	var o instancetest.Outcome
	if gone := a.Caller.Client().Gone(); gone != nil {
		o.Err = gone
	} else {
		o.Grant, o.Err = q.i.service.Acquire(ctx, a.Request)
	}
	if !alive() {
		return
	}
	q.hangUp(a.Caller.Client().(*caller), o.Err)
	orphan, ok := q.line.Orphan(o.Err)
	if ok {
		asked := q.i.now()
		if l, err := q.i.service.Do(ctx, leadership.Release{LeaseRequest: orphan}); err == nil && alive() {
			q.i.learn(l, asked)
		}
	}
	q.i.does(func() {
		q.asking = false
		q.line.Finish(a, o, q.i.now())
		q.drive()
		q.i.learnt(q.election, false)
	})
}
