package file

import (
	"errors"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// start sets the store's clock from the machine's. After a new boot it restarts all leases and
// locks that ran, in a first commit.
func (t *table) start(machine Clock, l *log, b *batch) (storeClock, error) {
	clock := storeClock{anchor: t.anchor, sinceBoot: machine.SinceBoot}
	// A clock that has gone back within one boot counts as another boot: that happens to a machine
	// that is restored from a snapshot while its disk is not.
	if machine.BootID != "" && t.boot == machine.BootID && !clock.now().Before(t.last) {
		return clock, nil
	}
	now := time.Now().Round(0).UTC() // the only hint of how long the machine was off
	if t.last.After(now) {
		now = t.last
	}
	clock.anchor = now.Add(-machine.SinceBoot())
	b.begin(now)
	b.newBoot(machine.BootID, clock.anchor)
	for _, n := range t.entries {
		if r, runs := n.running(t.last, now); runs {
			b.replace(r)
		}
	}
	if err := l.append(b.frame); err != nil {
		return clock, err
	}
	b.apply()
	return clock, nil
}

// running returns the record with its lease or lock restarted now, if one ran at the instant of the
// last commit, because it is not known how long the machine was off. A lease or a lock that had
// ended by then stays ended. A record that cannot be trusted stays as it is, and is refused when it
// is read. A record that needs a newer program is restarted, too, because that program is not
// running; its lock delay is unknown, so the longest is assumed.
func (n *entry) running(last, now time.Time) (r rule.Record, runs bool) {
	r = n.current()
	switch {
	case rule.Verify(rule.Snapshot{Record: r, Now: now}, n.newest) != nil:
		return r, false
	case errors.Is(n.refused, leadership.RecordTooNew):
		r.Policy.LockDelay = leadership.MaxLockDelay
	case n.refused != nil:
		return r, false
	}
	return begun(r, last, now)
}

// begun returns r restarted at now, and reports whether it ran at the given instant: its lease, the
// lock after a lease whose end is not recorded, or a recorded lock. The limits of the term stay as
// far away as they were; standing orders and cooldowns keep their dates.
func begun(r rule.Record, at, now time.Time) (_ rule.Record, runs bool) {
	held := r.LeaderID != ""
	switch {
	case held && r.LeaseEnd().After(at):
		r = moved(r, now.Sub(at))
		r.HeartbeatAt = now
	case held && r.LeaseEnd().Add(r.Policy.LockDelay).After(at):
		r = moved(r, now.Sub(r.LeaseEnd()))
		r.HeartbeatAt = now.Add(-r.LeaseDuration)
	case !held && r.EndedAt.Add(r.LockFor).After(at):
		r.EndedAt = now
	default:
		return r, false
	}
	return r, true
}

// moved returns r with the limits of its term moved on by that much.
func moved(r rule.Record, by time.Duration) rule.Record {
	if !r.EndsBy.IsZero() {
		r.EndsBy = r.EndsBy.Add(by)
	}
	r.Standing = r.Standing.TermMoved(by)
	return r
}
