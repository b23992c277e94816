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

// Signals are the signals that the caller of Run passes on.
var Signals = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// Run starts the command and returns when it and everything it started is gone: because it ended by
// itself, because ctx ended, or because the deadline was near. The error is for a command that was
// never started.
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
	l := &leash{Config: c, child: child, group: g, tty: tty, file: file, alarm: alarm, started: make(chan startedGuard, 1)}
	return l.lead(ctx), nil
}

type leash struct {
	Config
	child *child
	group *group
	tty   terminal
	file  deadlineFile
	alarm *alarm

	guard    *guard // nil if there is none
	starting bool   // a new one is being started
	started  chan startedGuard
	fails    int // consecutive failed starts

	passed []os.Signal   // each once
	why    error         // why the command is being stopped; nil if it is not
	killAt time.Duration // set with why
	killed bool
}

// lead starts the command, and returns when all of it is gone.
func (l *leash) lead(ctx context.Context) End {
	if l.begin(ctx) {
		l.hold(ctx)
	}
	l.group.end(l.Log)
	l.killGuards()
	l.tty.takeBack()
	end := l.child.reap()
	end.Err, end.Passed, end.Terminal = l.why, l.passed, l.tty.file != nil
	return end
}

// begin starts a guard and opens the gate. It reports false if the command must not start.
func (l *leash) begin(ctx context.Context) bool {
	guard, err := startGuard(l.group, l.Deadline(), l.Deadline()-l.Grace)
	l.guard = guard
	switch {
	case err != nil:
		l.why = fmt.Errorf("%w: %w", ErrGuard, err)
	case ctx.Err() != nil:
		l.why = context.Cause(ctx)
	default:
		l.tty.lend(l.group.id)
		l.child.begin()
		return true
	}
	return false
}

// hold returns when the command has ended.
func (l *leash) hold(ctx context.Context) {
	over := ctx.Done()
	for {
		l.checkDeadline()
		select {
		case <-l.child.exited:
			if l.why == nil && boottime.Now() >= l.Deadline() {
				l.why = ErrDeadline // killed by the guard
			}
			return
		case <-over:
			over = nil
			l.stop(context.Cause(ctx))
		case why := <-l.Stop:
			l.stop(why)
		case pause := <-l.Pause:
			l.pause(pause)
		case <-l.Moved:
			l.tell()
		case s := <-l.Signals:
			l.pass(s)
		case <-l.alarm.fired:
		case <-l.guardGone():
			l.replace("it died")
		case h := <-l.started:
			l.useGuard(h)
		}
	}
}

// checkDeadline does the steps that are due, and sets the alarm for the next one.
func (l *leash) checkDeadline() {
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

// stop sends SIGTERM. SIGKILL follows after the grace, and at the deadline at the latest.
func (l *leash) stop(why error) {
	if l.why != nil {
		return
	}
	l.why, l.killAt = why, min(boottime.Now()+l.Grace, l.Deadline())
	l.group.signal(syscall.SIGTERM)
	l.pause(false)
	l.tell()
	l.Log.Warn("stopping the command", "reason", why, "killed in", l.killAt-boottime.Now())
}

func (l *leash) pass(s os.Signal) {
	if !slices.Contains(l.passed, s) {
		l.passed = append(l.passed, s)
	}
	l.group.signal(s.(syscall.Signal))
	if s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGQUIT {
		l.pause(false)
	}
}

// pause stops the group from running, or lets it go on. Meanwhile the caller has the terminal, so
// that the signals of the keyboard are heard. A command that is being stopped must run.
func (l *leash) pause(pause bool) {
	switch {
	case pause == l.child.paused.Load() || pause && l.why != nil:
		return
	case pause:
		l.child.paused.Store(true) // before: a command with the terminal would be continued
		l.group.signal(syscall.SIGSTOP)
		l.tty.takeBack()
		l.Log.Warn("the command is paused")
	default:
		l.child.paused.Store(false)
		l.tty.lend(l.group.id)
		l.group.signal(syscall.SIGCONT)
		l.Log.Info("the command goes on")
	}
}

// deadline returns when the command must be gone as things stand.
func (l *leash) deadline() time.Duration {
	if l.why != nil {
		return l.killAt
	}
	return l.Deadline()
}

// tell passes the deadline on, first to the guard: the command must not read a later deadline than
// the one that is enforced.
func (l *leash) tell() {
	switch {
	case l.guard == nil:
	case l.guard.idle():
		l.guard.tell(l.group.id, l.deadline())
	default:
		l.replace("it does not answer")
	}
	if err := l.file.write(l.deadline()); err != nil {
		l.Log.Warn("the deadline file cannot be replaced; it shows an earlier deadline", "reason", err)
	}
}
