package file

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/store/internal/logs"
	"regent/store/internal/retirement"
)

// table has all data of the store. Only the writer changes it, once the change is durable.
type table struct {
	entries map[leadership.Election]*entry
	names   []leadership.Election // of entries, in order
	held    map[leadership.Election]bool
	waiting map[leadership.Election]bool // elections with events that are not announced
	retire  retirement.Plan
	events  pages
	logs    map[rule.LogID]*logs.Log

	last   time.Time // of the last commit
	pruned time.Time // of the newest event that was deleted
	boot   string    // id of the boot in which the store was last used
	anchor time.Time // the instant of that boot
}

// entry is an election. Once it is in a table it is never changed, except for elements appended
// after the ends of its slices. It is small, because a heartbeat replaces it; kept stays.
type entry struct {
	*kept
	heartbeat time.Time // the record's HeartbeatAt
	newest    rule.Newest
	places    []place               // of its events, by revision
	waiting   []leadership.Revision // of the events that are not announced
}

// kept is an election without its history. Once it is in a table it is never changed.
type kept struct {
	record  rule.Record  // except for HeartbeatAt
	carried rule.Carried // its policy and standing as text
	refused error        // why no call may rely on the record
}

// newEntry returns an election that was never seen.
func newEntry(e leadership.Election) *entry {
	return &entry{kept: &kept{record: rule.Record{Election: e}}}
}

// set replaces the record.
func (n *entry) set(r rule.Record, carried rule.Carried) {
	n.kept, n.heartbeat = &kept{record: r, carried: carried}, r.HeartbeatAt
}

// current returns the present record.
func (n *entry) current() rule.Record {
	r := n.record
	r.HeartbeatAt = n.heartbeat
	return r
}

// place locates an event.
type place struct {
	revision leadership.Revision
	number   uint64 // among all events, in the order of their commits
	at       int64  // nanoseconds since 1970
}

func newTable() *table {
	return &table{
		entries: make(map[leadership.Election]*entry),
		held:    make(map[leadership.Election]bool),
		waiting: make(map[leadership.Election]bool),
		retire:  make(retirement.Plan),
		logs:    make(map[rule.LogID]*logs.Log),
	}
}

// snapshot returns the election at the given instant; n is nil if it was never seen.
func (n *entry) snapshot(e leadership.Election, now time.Time) (snap rule.Snapshot, err error) {
	snap.Record.Election, snap.Now = e, now
	switch {
	case n == nil || n.kept == nil:
	case n.refused != nil:
		err = n.refused
	default:
		snap.Record = n.record
		snap.Record.HeartbeatAt = n.heartbeat
	}
	return snap, err
}

// decode decodes policy and standing of a record that was read from the folder, and verifies it as
// of the instant. Records that the store writes itself are verified by Codec.Decide.
func (n *entry) decode(c rule.Codec, at time.Time) {
	if n.carried.Needs != 0 { // otherwise there is no record
		n.refused = c.Decode(&n.record, n.carried)
	}
	n.verify(at)
}

func (n *entry) verify(at time.Time) {
	if n.refused == nil {
		n.refused = rule.Verify(rule.Snapshot{Record: n.current(), Now: at}, n.newest)
	}
}

// add adds the newest event.
func (n *entry) add(p place, t leadership.Token) {
	n.places = append(n.places, p)
	n.waiting = append(n.waiting, p.revision)
	n.newest = rule.Newest{Revision: p.revision, Token: t}
}

// behind returns the index of the first event after the revision.
func (n *entry) behind(r leadership.Revision) int {
	return sort.Search(len(n.places), func(i int) bool { return n.places[i].revision > r })
}

// announce notes that an event is announced. It reports false if that was noted before.
func (n *entry) announce(r leadership.Revision) bool {
	at, waits := slices.BinarySearch(n.waiting, r)
	switch {
	case !waits:
	case at == 0: // nearly always
		n.waiting = n.waiting[1:]
	default:
		n.waiting = slices.Concat(n.waiting[:at], n.waiting[at+1:])
	}
	return waits
}

// forget deletes the events up to the revision, which must be older than the newest, and returns
// their places.
func (n *entry) forget(r leadership.Revision) []place {
	i := n.behind(r)
	forgotten := n.places[:i]
	n.places = n.places[i:]
	waiting, _ := slices.BinarySearch(n.waiting, r+1)
	n.waiting = n.waiting[waiting:]
	return forgotten
}

// put replaces an election.
func (t *table) put(n *entry) {
	e := n.record.Election
	before := t.entries[e]
	if before == nil {
		at, _ := slices.BinarySearch(t.names, e)
		t.names = slices.Insert(t.names, at, e)
	}
	t.entries[e] = n
	if before == nil || before.kept != n.kept || len(before.waiting) != len(n.waiting) { // no heartbeat
		t.note(n)
	}
}

// note updates the sets and the plan that are derived from an election.
func (t *table) note(n *entry) {
	e := n.record.Election
	set(t.held, e, n.record.LeaderID != "")
	set(t.waiting, e, len(n.waiting) > 0)
	t.retire.Set(&n.record)
}

func set(m map[leadership.Election]bool, e leadership.Election, in bool) {
	if in {
		m[e] = true
	} else {
		delete(m, e)
	}
}

// replay applies a frame. It reports whether the frame was the last of its file. The table must not
// be used before a call of ready.
func (t *table) replay(payload []byte) (last bool, err error) {
	d := &decoder{rest: payload}
	t.last = d.instant()
	for !last && len(d.rest) > 0 {
		last = t.replayEntry(d)
	}
	if len(d.rest) > 0 {
		d.fail("something follows the end")
	}
	return last, d.err
}

func (t *table) replayEntry(d *decoder) (last bool) {
	switch kind := d.byte(); kind {
	case tagEvent:
		from := d.rest
		if at := t.replayEvent(d, t.events.end()); d.err == nil {
			t.events.add(from[:len(from)-len(d.rest)], at)
			t.events.pack()
		}
	case tagRecord:
		n := t.entry(d)
		n.set(d.record(n.record.Election))
	case tagHeartbeat:
		t.entry(d).heartbeat = d.instant()
	case tagAnnounced:
		t.entry(d).announce(leadership.Revision(d.varint()))
	case tagWaiting:
		t.replayWaiting(d)
	case tagForgotten:
		n, r := t.entry(d), leadership.Revision(d.varint())
		if r >= n.newest.Revision {
			d.fail("an event is forgotten that is the newest, or was never there")
			break
		}
		t.drop(n.forget(r))
	case tagBoot:
		t.boot, t.anchor = string(d.text()), d.instant()
	case tagPruned:
		t.pruned = d.instant()
	case tagPage:
		t.replayPage(d)
	case tagLog:
		t.replayLog(d)
	case tagSegment:
		t.replaySegment(d)
	case tagTrimmed:
		t.replayTrim(d)
	case tagEnd:
		return true
	default:
		d.fail(fmt.Sprintf("an entry of the unknown kind %d", kind))
	}
	return false
}

// entry returns the election whose name comes next.
func (t *table) entry(d *decoder) *entry {
	name := d.text()
	n := t.entries[leadership.Election(name)]
	if n == nil {
		n = newEntry(leadership.Election(name))
		if d.err == nil {
			t.entries[n.record.Election] = n
		}
	}
	return n
}

// replayWaiting replaces the events of an election that are not announced.
func (t *table) replayWaiting(d *decoder) {
	n := t.entry(d)
	n.waiting = nil
	for left := d.uvarint(); left > 0 && d.err == nil; left-- {
		r := leadership.Revision(d.varint())
		i := n.behind(r)
		if i == 0 || n.places[i-1].revision != r || len(n.waiting) > 0 && r <= n.waiting[len(n.waiting)-1] {
			d.fail("an event waits to be announced that is not there")
			return
		}
		n.waiting = append(n.waiting, r)
	}
}

// replayEvent adds the next event of an election, which has the given number. It returns the time
// of the event.
func (t *table) replayEvent(d *decoder, number uint64) (at int64) {
	from := *d
	name, r, token, instant := d.eventHead()
	d.skipEvent()
	if d.err != nil {
		return 0
	}
	n := t.entry(&from)
	if r <= n.newest.Revision || len(name) == 0 {
		d.fail(fmt.Sprintf("event %d of %q follows event %d", r, name, n.newest.Revision))
		return 0
	}
	at = instant.UnixNano()
	n.add(place{r, number, at}, token)
	return at
}

// replayPage adds the events of a page.
func (t *table) replayPage(d *decoder) {
	packed := bytes.Clone(d.text())
	raw, err := unpack(packed)
	if d.check(err); d.err != nil {
		return
	}
	loaded, number := page{packed: packed}, t.events.end()
	for events := (&decoder{rest: raw}); len(events.rest) > 0 && d.err == nil; loaded.count++ {
		event := &decoder{rest: events.text()}
		if len(event.rest) > 0 {
			at := t.replayEvent(event, number+uint64(loaded.count))
			loaded.kept++
			loaded.first = cmp.Or(loaded.first, at)
		}
		if len(event.rest) > 0 {
			event.fail("something follows an event")
		}
		d.check(cmp.Or(events.err, event.err))
	}
	if loaded.alive = loaded.kept; loaded.count != pageEvents || loaded.kept == 0 || number%pageEvents != 0 {
		d.fail("a page of events is not whole")
	}
	t.events.list = append(t.events.list, loaded)
}

// drop drops events that an election has forgotten.
func (t *table) drop(forgotten []place) {
	for _, p := range forgotten {
		t.events.drop(p.number)
	}
	if n := len(forgotten); n > 0 {
		if at := time.Unix(0, forgotten[n-1].at).UTC(); at.After(t.pruned) {
			t.pruned = at
		}
	}
}

// ready completes a table after the last replay.
func (t *table) ready(c rule.Codec) {
	for e, n := range t.entries {
		t.names = append(t.names, e)
		n.decode(c, t.last)
		t.note(n)
	}
	slices.Sort(t.names)
}

// tidy packs full pages, and thins one page.
func (t *table) tidy() {
	t.events.pack()
	t.events.thin(t.forgot)
}

// forgot reports whether the event is no longer in its election.
func (t *table) forgot(event []byte) bool {
	d := decoder{rest: event}
	name, r, _, _ := d.eventHead()
	n := t.entries[leadership.Election(name)]
	return n == nil || len(n.places) == 0 || r < n.places[0].revision
}

// count returns how many elections and events there are.
func (t *table) count() (elections, events int) {
	for _, n := range t.entries {
		events += len(n.places)
	}
	return len(t.entries), events
}
