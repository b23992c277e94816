//go:build unix

package leash

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"regent/leadership/boottime"
)

// Signals are those that whoever runs a command passes on.
var Signals = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// Run starts the command, and returns when it is gone and with it all that it has started: when it has ended by itself, when ctx has ended and it was
// stopped for that, or when its deadline was near. The error is for a command that was never begun.
func Run(ctx context.Context, c Config) (End, error) {
	alarm, err := newAlarm()
	if err != nil {
		return End{}, err
	}
	defer alarm.close()
	file, err := newDeadlineFile(c.Deadline())
	if err != nil {
		return End{}, err
	}
	defer removeDeadline(string(file))
	mark := c.DeadlineVariable + "=" + string(file)
	tty := terminalOf(c.Files[0])
	child, err := start(c, append(c.Env, mark), tty.file != nil)
	if err != nil {
		return End{}, err
	}
	g := openGroup(child.proc.Pid, os.Getpid(), mark)
	defer g.close()
	l := &leash{Config: c, child: child, group: g, file: file, alarm: alarm, hired: make(chan hiring, 1)}
	return l.lead(ctx, tty), nil
}

// leash is a command that runs.
type leash struct {
	Config
	child *child
	group *group
	file  deadlineFile
	alarm *alarm

	guard  *guard // nil while there is none
	hiring bool   // whether one is being hired
	hired  chan hiring
	fails  int // of hirings, in a row

	passed []os.Signal   // each once
	why    error         // it is stopped; nil if it is not
	killAt time.Duration // if it is stopped
	killed bool
}

// lead lets the command begin, and stays with it until all of it is gone.
func (l *leash) lead(ctx context.Context, tty terminal) End {
	if l.begin(ctx, tty) {
		l.hold(ctx)
	}
	l.group.end(l.Log)
	l.dismissGuard()
	tty.takeBack()
	end := l.child.reap()
	end.Err, end.Passed, end.Terminal = l.why, l.passed, tty.file != nil
	return end
}

// begin hires a guard and opens the gate, unless there is no reason to any more.
func (l *leash) begin(ctx context.Context, tty terminal) bool {
	guard, err := hire(l.group, l.Deadline(), l.Deadline()-l.Grace)
	l.guard = guard
	switch {
	case err != nil:
		l.why = fmt.Errorf("%w: %w", ErrGuard, err)
	case ctx.Err() != nil:
		l.why = context.Cause(ctx)
	default:
		tty.lend(l.group.id)
		l.child.begin()
		return true
	}
	return false
}

// hold returns when the command has ended.
func (l *leash) hold(ctx context.Context) {
	over := ctx.Done()
	for {
		l.watchTheTime()
		select {
		case <-l.child.exited:
			if l.why == nil && boottime.Now() >= l.Deadline() {
				l.why = ErrDeadline // the guard's work
			}
			return
		case <-over:
			over = nil
			l.stop(context.Cause(ctx))
		case <-l.Moved:
			l.tell()
		case s := <-l.Signals:
			l.pass(s)
		case <-l.alarm.rings:
		case <-l.guardGone():
			l.replace("it has died")
		case h := <-l.hired:
			l.take(h)
		}
	}
}

// watchTheTime does what is due, and sets the alarm for what is due next.
func (l *leash) watchTheTime() {
	now := boottime.Now()
	term := l.Deadline() - l.Grace
	if l.why == nil && now >= term {
		l.stop(ErrDeadline)
	}
	switch {
	case l.why == nil:
		l.alarm.set(term)
	case now < l.killAt:
		l.alarm.set(l.killAt)
	case !l.killed:
		l.killed = true
		l.group.signal(syscall.SIGKILL)
	}
}

// stop asks the command to end. What it does not do by itself within the grace, and before the deadline, is done to it.
func (l *leash) stop(why error) {
	if l.why != nil {
		return
	}
	l.why, l.killAt = why, min(boottime.Now()+l.Grace, l.Deadline())
	l.group.signal(syscall.SIGTERM)
	l.tell()
	l.Log.Warn("stopping the command", "reason", why, "killed in", l.killAt-boottime.Now())
}

// pass passes a signal on.
func (l *leash) pass(s os.Signal) {
	if !slices.Contains(l.passed, s) {
		l.passed = append(l.passed, s)
	}
	l.group.signal(s.(syscall.Signal))
}

// deadline is when the command has to be gone as things stand.
func (l *leash) deadline() time.Duration {
	if l.why != nil {
		return l.killAt
	}
	return l.Deadline()
}

// tell passes the deadline on, to the guard first: what the command reads must not be later than what it has.
func (l *leash) tell() {
	switch {
	case l.guard == nil:
	case l.guard.idle():
		l.guard.tell(l.group.id, l.deadline())
	default:
		l.replace("it does not answer")
	}
	if err := l.file.write(l.deadline()); err != nil {
		l.Log.Warn("the file with the deadline cannot be replaced; it tells an earlier one", "reason", err)
	}
}
