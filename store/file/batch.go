package file

import (
	"maps"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/store/internal/history"
	"regent/store/internal/logs"
)

// maxPruned is the most events that one change deletes: more than it adds, and few enough to be
// fast.
const maxPruned = 100

// batch has the changes of one commit: the next frame, and the elections as they will be in the
// tables after it.
type batch struct {
	table   *table
	now     time.Time
	history history.Span
	codec   rule.Codec

	frame   []byte
	empty   int // the length of a frame that changes nothing
	changed map[leadership.Election]*entry
	logs    map[rule.LogID]*logs.Log
	events  []span  // of new events in frame, in order
	dropped []place // of forgotten events

	panicked any // the value with which the present call's decision panicked; otherwise nil
}

type span struct{ from, to int }

func newBatch(t *table, h history.Span, c rule.Codec) *batch {
	return &batch{table: t, history: h, codec: c, changed: make(map[leadership.Election]*entry), logs: make(map[rule.LogID]*logs.Log)}
}

// begin makes the batch an empty one at the given instant.
func (b *batch) begin(now time.Time) {
	const large = 1 << 20
	if cap(b.frame) > large {
		b.frame = nil
	}
	b.now = now
	b.frame = appendInstant(beginFrame(b.frame), now)
	b.empty = len(b.frame)
	b.events, b.dropped = b.events[:0], b.dropped[:0]
	clear(b.changed)
	clear(b.logs)
}

// changes reports whether the batch changes anything.
func (b *batch) changes() bool { return len(b.frame) > b.empty }

// apply changes the tables once the frame is durable. The caller holds their mutex.
func (b *batch) apply() {
	t := b.table
	for _, s := range b.events {
		t.events.add(b.frame[s.from:s.to], b.now.UnixNano())
	}
	t.drop(b.dropped)
	for _, n := range b.changed {
		t.put(n)
	}
	maps.Copy(t.logs, b.logs)
	t.last = b.now
}

// present returns an election as changed by the batch so far.
func (b *batch) present(e leadership.Election) *entry {
	if n := b.changed[e]; n != nil {
		return n
	}
	return b.table.entries[e]
}

// own returns an election that the batch may change.
func (b *batch) own(e leadership.Election) *entry {
	n := b.changed[e]
	if n == nil {
		if before := b.table.entries[e]; before != nil {
			n = new(*before)
		} else {
			n = newEntry(e)
		}
		b.changed[e] = n
	}
	return n
}

// decide runs a caller's decision. If it panics there is no change.
func (b *batch) decide(present rule.Snapshot, kept rule.Carried, decide func(rule.Snapshot) (rule.Change, error)) (rule.Change, rule.Carried, error) {
	defer b.catch()
	return b.codec.Decide(present, kept, decide)
}

// catch recovers a decision's panic, so that only its caller gets it.
func (b *batch) catch() { b.panicked = recover() }

// update decides on an election, and adds the change to the batch. It returns the election after
// the change, and the instant of the change. If it returns an error it has added nothing.
func (b *batch) update(e leadership.Election, decide func(rule.Snapshot) (rule.Change, error)) (is entry, at time.Time, err error) {
	var kept rule.Carried
	if present := b.present(e); present != nil {
		is, kept = *present, present.carried
	}
	at = b.now
	snap, err := is.snapshot(e, at)
	if err != nil {
		return is, at, err
	}
	ch, carried, err := b.decide(snap, kept, decide)
	if err != nil || ch.Empty() {
		return is, at, err
	}
	for i := range ch.Events {
		if err := writable(&ch.Events[i]); err != nil {
			return is, at, err
		}
	}
	if !ch.Before.IsZero() {
		at = b.beat(e)
	}
	after := ch.Committed(at)
	same(&after)
	n := b.own(e)
	if len(ch.Events) == 0 {
		snap.Record.HeartbeatAt = after.HeartbeatAt
		if snap.Record == after { // a heartbeat changes nothing else
			b.heartbeat(e, after.HeartbeatAt)
			return *n, at, nil
		}
	}
	n.set(after, carried)
	b.frame = appendRecord(b.frame, &n.record, carried)
	for i := range ch.Events {
		b.event(n, ch.Events[i])
	}
	b.prune(n)
	return *n, at, nil
}

// beat returns the instant of a heartbeat that renews. All changes of a batch have one instant, but
// two heartbeats of a lease must differ, so that a grant whose copy was answered can be told from a
// grant that no leader knows of.
func (b *batch) beat(e leadership.Election) time.Time {
	if n := b.changed[e]; n != nil && !b.now.After(n.heartbeat) {
		return n.heartbeat.Add(time.Nanosecond)
	}
	return b.now
}

// heartbeat adds a change of the heartbeat alone.
func (b *batch) heartbeat(e leadership.Election, at time.Time) {
	b.own(e).heartbeat = at
	b.frame = appendHeartbeat(b.frame, e, at)
}

func (b *batch) event(n *entry, e leadership.Event) {
	e.At = b.now
	b.frame = append(b.frame, tagEvent)
	from := len(b.frame)
	b.frame = appendEvent(b.frame, &e)
	number := b.table.events.end() + uint64(len(b.events))
	b.events = append(b.events, span{from, len(b.frame)})
	n.add(place{e.Revision, number, b.now.UnixNano()}, e.Token)
}

// prune deletes the oldest events of an election that has just changed, if they need no longer be
// kept.
func (b *batch) prune(n *entry) {
	over := 0
	for over < min(maxPruned, len(n.places)-1) && b.history.Over(time.Unix(0, n.places[over].at), b.now) {
		over++
	}
	if over == 0 {
		return
	}
	last := n.places[over-1].revision
	b.frame = appendRevision(b.frame, tagForgotten, n.record.Election, last)
	b.dropped = append(b.dropped, n.forget(last)...)
}

// renew adds a heartbeat, if the lease is the one named. It copies no record.
func (b *batch) renew(c *rule.Renewal, a *rule.Renewed) {
	n := b.present(c.Election)
	if n == nil || n.refused != nil {
		a.Err = rule.ErrNotRenewed
		if n != nil {
			a.Err = n.refused
		}
		return
	}
	a.Record, a.Now = &n.record, b.beat(c.Election)
	var ok bool
	if a.Before, ok = n.record.Heartbeat(c, n.heartbeat, a.Now); !ok {
		a.Err = rule.ErrNotRenewed
		return
	}
	a.HeartbeatAt = rule.StartOf(a.Now, a.Before, n.record.LeaseDuration)
	b.heartbeat(c.Election, a.HeartbeatAt)
}

// announce marks an event as announced.
func (b *batch) announce(id leadership.EventID) {
	if b.present(id.Election) != nil && b.own(id.Election).announce(id.Revision) {
		b.frame = appendRevision(b.frame, tagAnnounced, id.Election, id.Revision)
	}
}

// replace replaces a record, and adds no event. If its standing has become too large, the old
// standing stays: the ends in it are then earlier, not later.
func (b *batch) replace(r rule.Record) {
	n := b.own(r.Election)
	carried, refused := n.carried, n.refused
	if r.Standing != n.record.Standing {
		if encoded, err := b.codec.Encode(&r); err == nil {
			carried = encoded
		} else {
			r.Standing = n.record.Standing
		}
	}
	same(&r)
	n.set(r, carried)
	n.refused = refused
	n.verify(b.now)
	b.frame = appendRecord(b.frame, &n.record, carried)
}

// newBoot sets the boot in which the store is used.
func (b *batch) newBoot(id string, anchor time.Time) {
	b.table.boot, b.table.anchor = id, anchor
	b.frame = appendInstant(appendText(append(b.frame, tagBoot), id), anchor)
}
