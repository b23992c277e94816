//go:build unix

package leash

import (
	"fmt"
	"time"

	"regent/leadership/boottime"
)

const (
	// guardStartLimit is how long a new guard may take to answer.
	guardStartLimit = 5 * time.Second
	// maxFails is how many guards in a row may fail to start while the command runs.
	maxFails = 3
)

type startedGuard struct {
	guard *guard
	err   error
}

// guardGone returns a channel that is closed when the guard has died, or nil (which blocks forever)
// if there is no guard.
func (l *leash) guardGone() <-chan struct{} {
	if l.guard == nil {
		return nil
	}
	return l.guard.gone
}

// replace starts another guard in the background. Until it answers, the caller of Run enforces the
// deadline alone.
func (l *leash) replace(why string) {
	old := l.guard
	l.guard = nil
	l.startReplacement(old)
	l.Log.Warn("replacing the guard", "reason", why)
}

// startReplacement starts a guard, and then kills the old one. A guard that does not answer may
// still act at the deadline that it knows, which is better than none.
func (l *leash) startReplacement(old *guard) {
	l.starting = true
	now, deadline := boottime.Now(), l.deadline()
	limit := now + min(guardStartLimit, max(l.Deadline()-now, 0)/2)
	go func() {
		g, err := startGuard(l.group, deadline, limit)
		if old != nil {
			old.kill()
		}
		l.started <- startedGuard{g, err}
	}()
}

// useGuard uses the new guard, and stops the command if too many could not be started.
func (l *leash) useGuard(h startedGuard) {
	l.starting = false
	if h.err == nil {
		l.guard, l.fails = h.guard, 0
		l.tell()
		return
	}
	l.fails++
	if l.fails == maxFails {
		l.stop(fmt.Errorf("%w: %w", ErrGuard, h.err))
		return
	}
	l.startReplacement(nil)
}

// killGuards kills the present guard and any that is being started.
func (l *leash) killGuards() {
	if l.starting {
		l.guard = (<-l.started).guard
	}
	if l.guard != nil {
		l.guard.kill()
	}
}
