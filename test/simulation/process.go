package simulation

import (
	"context"
	"errors"
	"iter"
	"time"
)

// process runs code that takes time, such as a call of the service, as if it blocked, while the
// simulation goes on. It is a coroutine: only one process, or the simulation, runs at a time. One
// that has ended is used again.
type process struct {
	w     *timeline
	ctx   context.Context              // has the process
	next  func() (time.Duration, bool) // goes on until it waits again
	yield func(time.Duration) bool     // lets time go by; called from within
	stop  func()                       // ends it, wherever it waits
	step  func()
	owner owner
	do    func(context.Context) // nil once it is done
}

// owner is the agent or instance that a process belongs to.
type owner interface {
	// Alive reports whether the owner has not crashed. If it has, the process does nothing more.
	Alive() bool
	// Stalled is how long the owner is still stopped: messages wait until then.
	Stalled() time.Duration
}

// start runs code that may call the store. It begins at once.
func (w *timeline) start(o owner, do func(context.Context)) {
	p := w.idle()
	p.owner, p.do = o, do
	p.step()
}

// idle is a process with nothing to do.
func (w *timeline) idle() *process {
	if last := len(w.processes) - 1; last >= 0 {
		p := w.processes[last]
		w.processes = w.processes[:last]
		return p
	}
	p := &process{w: w}
	p.ctx = context.WithValue(context.Background(), processKey{}, p)
	p.next, p.stop = iter.Pull(p.live)
	p.step = p.goOn
	w.started = append(w.started, p)
	return p
}

// end ends all processes, which would otherwise keep all that they know.
func (w *timeline) end() {
	for _, p := range w.started {
		p.stop()
	}
}

// errEnded ends a process that waits.
var errEnded = errors.New("the run is over")

// live runs one function after the other, until the run is over.
func (p *process) live(yield func(time.Duration) bool) {
	defer func() {
		if r := recover(); r != nil && r != errEnded {
			panic(r)
		}
	}()
	p.yield = yield
	for {
		p.do(p.ctx)
		p.do, p.owner = nil, nil
		p.pass(0)
	}
}

// pass lets time go by.
func (p *process) pass(d time.Duration) {
	if !p.yield(d) {
		panic(errEnded)
	}
}

// goOn runs it until it waits or is done.
func (p *process) goOn() {
	d, _ := p.next()
	if p.do == nil {
		p.w.processes = append(p.w.processes, p)
		return
	}
	p.w.after(d, p.step)
}

type processKey struct{}

// wait waits so long, and until its owner is not stopped.
func (p *process) wait(d time.Duration) {
	for p.pass(d); p.owner.Stalled() > 0; {
		p.pass(p.owner.Stalled())
	}
}

// processOf returns the process that a call is made in.
func processOf(ctx context.Context) *process { return ctx.Value(processKey{}).(*process) }
