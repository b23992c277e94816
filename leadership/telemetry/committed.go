package telemetry

import (
	"cmp"
	"context"
	"time"

	"regent/leadership"
)

// committed counts and remembers what a transaction of this instance has written.
func (m *Metrics) committed(ctx context.Context, tx transaction, after leadership.Snapshot) {
	events := make([]leadership.Event, len(tx.change.Events))
	for i, e := range tx.change.Events {
		e.At = after.Now // rules do not set it
		events[i] = e
	}
	m.count(ctx, tx, events)
	m.elections.learn(tx.before)
	m.elections.hear(events...)
	m.elections.learn(after)
}

func (m *Metrics) count(ctx context.Context, tx transaction, events []leadership.Event) {
	before := tx.before.Record
	for _, e := range events {
		m.changes.Add(ctx, 1, with("type", e.Type))
		switch {
		case e.PreviousLeaderID != "":
			m.terms.Record(ctx, max(tx.ended().Sub(before.AcquiredAt), 0).Seconds(), with("end", e.Type))
		case e.Type == leadership.EventAcquired && !tx.ended().IsZero():
			m.transitioned(ctx, tx, e.At)
		}
	}
}

// ended returns when the last term ended; zero if there was none.
func (tx transaction) ended() time.Time {
	switch before := tx.before.Record; {
	case !tx.change.Record.EndedAt.IsZero():
		return tx.change.Record.EndedAt
	case before.LeaderID != "":
		return before.LeaseEnd()
	default:
		return before.EndedAt
	}
}

// fresh is how long after the end of a term the next one is its successor although no candidate
// waited for it.
const fresh = 10 * time.Minute

// transitioned times a grant that follows another term.
func (m *Metrics) transitioned(ctx context.Context, tx transaction, granted time.Time) {
	took := max(granted.Sub(tx.ended()), 0)
	how, waited := m.elections.last(tx.before.Record.Election)
	if took > fresh {
		if waited == 0 {
			return
		}
		took = min(took, waited)
	}
	m.transition.Record(ctx, took.Seconds(), with("after", cmp.Or(tx.expired(), how, likely(tx.before.Record))))
}

// expired returns how the last term ended if this transaction found that out; else "".
func (tx transaction) expired() leadership.EventType {
	if tx.before.Record.LeaderID != "" {
		return leadership.EventExpired
	}
	return ""
}

// likely returns how the last term ended according to the record: only a release leaves no lock.
func likely(r leadership.Record) leadership.EventType {
	if r.LockFor > 0 {
		return leadership.EventExpired
	}
	return leadership.EventReleased
}
