//go:build unix

package leash

import (
	"fmt"
	"time"

	"regent/leadership/boottime"
)

const (
	// hireLimit is how long a new guard may take to say that it watches.
	hireLimit = 5 * time.Second
	// maxFails is how many guards may fail in a row while the command runs.
	maxFails = 3
)

// hiring is what came of an attempt to get a guard.
type hiring struct {
	guard *guard
	err   error
}

// guardGone is closed when the guard has died; nil, which never is, while there is none.
func (l *leash) guardGone() <-chan struct{} {
	if l.guard == nil {
		return nil
	}
	return l.guard.gone
}

// replace gets another guard. It does not wait for it: until it is there, the caller of Run watches alone, as it does anyway.
func (l *leash) replace(why string) {
	old := l.guard
	l.guard = nil
	l.hire(old)
	l.Log.Warn("the guard is replaced", "reason", why)
}

// hire gets a guard, and dismisses the old one, if there is one. A guard that does not listen may yet act, by the deadline that it knows, and is
// better than none until the other is there.
func (l *leash) hire(old *guard) {
	l.hiring = true
	now, deadline := boottime.Now(), l.deadline()
	limit := now + min(hireLimit, max(l.Deadline()-now, 0)/2)
	go func() {
		g, err := hire(l.group, deadline, limit)
		if old != nil {
			old.dismiss()
		}
		l.hired <- hiring{g, err}
	}()
}

// take takes the new guard, and stops the command if there is none to be had.
func (l *leash) take(h hiring) {
	l.hiring = false
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
	l.hire(nil)
}

// dismissGuard ends whatever guard there is, or is about to be.
func (l *leash) dismissGuard() {
	if l.hiring {
		l.guard = (<-l.hired).guard
	}
	if l.guard != nil {
		l.guard.dismiss()
	}
}
