package telemetry

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"

	"regent/leadership"
	"regent/leadership/rule"
)

// committed counts and remembers what a transaction of this instance has written.
func (m *Metrics) committed(ctx context.Context, x rule.Expect, tx transaction, after rule.Snapshot) {
	events := make([]leadership.Event, len(tx.change.Events))
	for i, e := range tx.change.Events {
		e.At = after.Now // rules do not set it
		events[i] = e
	}
	m.count(ctx, tx, events)
	m.vote(ctx, tx, events)
	m.handedOver(ctx, tx, events)
	m.report(ctx, x.Held, tx)
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
			at := tx.ended()
			if e.Type == leadership.EventEpoch || e.Type == leadership.EventReleased { // the leader or a successor goes on in another term
				at = e.At
			}
			m.terms.Record(ctx, max(at.Sub(before.AcquiredAt), 0).Seconds(), with("end", e.Type))
			if why := limitedBy(before, e); slices.Contains(endReasons, why) {
				m.limited.Add(ctx, 1, with("because", why))
			}
		case e.Type == leadership.EventAcquired && !tx.ended().IsZero():
			m.transitioned(ctx, tx, e.At)
		}
	}
}

// vote counts bids, times ballots, and counts terms that end for a better candidate.
func (m *Metrics) vote(ctx context.Context, tx transaction, events []leadership.Event) {
	before := tx.before.Record
	if tx.bid() {
		m.bids.Add(ctx, 1)
	}
	for _, e := range events {
		switch {
		case e.Type == leadership.EventAcquired && !before.Standing.Opened.IsZero():
			m.ballot.Record(ctx, max(e.At.Sub(before.Standing.Opened), 0).Seconds())
		case e.Type == leadership.EventHandingOver && e.ReadDetail().Because == rule.BecausePreempt:
			m.preempted.Add(ctx, 1)
		}
	}
}

// bid reports whether the transaction wrote a bid, and did not only take one back.
func (tx transaction) bid() bool {
	if tx.change.Record.Standing.Bids == tx.before.Record.Standing.Bids {
		return false // as of nearly all transactions
	}
	before := tx.before.Record.Bids()
	return slices.ContainsFunc(tx.change.Record.Bids(), func(b leadership.Bid) bool { return !slices.Contains(before, b) })
}

// limitedBy returns the limit or order that ended a term; "" if there was none. A leader that has
// to stop may release its lease before that end.
func limitedBy(before rule.Record, end leadership.Event) leadership.EndReason {
	switch why := before.EndsBecause; end.Type {
	case leadership.EventExpired, leadership.EventDeposed:
		return end.ReadDetail().EndsBecause
	case leadership.EventReleased:
		if why == leadership.EndsEvicted || why == leadership.EndsDrained || why == leadership.EndsHandOver {
			return why
		}
	}
	return ""
}

// reported counts one of the numbers that leaders report.
type reported struct {
	counter metric.Int64Counter
	of      func(leadership.Counters) int64
}

// report counts the work that a renewal has reported: the increase of its numbers over the record's
// previous report, whichever instance took that. So no work is counted twice.
func (m *Metrics) report(ctx context.Context, c *rule.Renewal, tx transaction) {
	if c == nil || c.Report == "" || tx.change.Empty() {
		return
	}
	before, now := tx.before.Record.Standing.Report.Report(), c.Report.Report()
	for _, r := range m.reported {
		r.counter.Add(ctx, max(r.of(now.Counters)-r.of(before.Counters), 0))
	}
}

// ended returns when the last term ended; zero if there was none.
func (tx transaction) ended() time.Time {
	switch before := tx.before.Record; {
	case before.Token == 0:
		return time.Time{}
	case !tx.change.Record.EndedAt.IsZero():
		return tx.change.Record.EndedAt
	case before.LeaderID != "":
		return before.LeaseEnd()
	default:
		return before.EndedAt
	}
}

// fresh is how long after the end of a term the next one still counts as its successor if no
// candidate waited.
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
	m.transition.Record(ctx, took.Seconds(), with("after", cmp.Or(tx.ending(), how, likely(tx.before.Record))))
}

// ending returns how the last term ended if this transaction recorded that; otherwise "".
func (tx transaction) ending() leadership.EventType {
	for _, e := range tx.change.Events {
		if e.PreviousLeaderID != "" {
			return e.Type
		}
	}
	return ""
}

// likely returns how the last term ended according to the record: only a release leaves no lock.
func likely(r rule.Record) leadership.EventType {
	switch {
	case r.Standing.Deposed.Token > 0:
		return leadership.EventDeposed
	case r.LockFor > 0:
		return leadership.EventExpired
	}
	return leadership.EventReleased
}
