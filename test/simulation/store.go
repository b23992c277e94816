package simulation

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// epoch is what the store's clock shows when a run begins.
var epoch = time.Unix(1_700_000_000, 0).UTC()

// guard is the largest difference between the clocks of a store's servers, where there are several.
const guard = 50 * time.Millisecond

// attempts is how often a transaction is tried before the store gives up.
const attempts = 5

// data is the contents of the store, and its clock.
type data struct {
	w         *timeline
	kind      kind
	faults    *faults
	figures   *Figures
	ahead     time.Duration // by which the store's clock has leapt
	elections map[leadership.Election]*row
	truth     *truth
}

// row is an election as it is stored.
type row struct {
	record  rule.Record
	version int // raised by every write
	events  []leadership.Event
	last    time.Time           // of its commits
	told    leadership.Revision // marked as announced, up to this one
}

func (d *data) row(e leadership.Election) *row {
	r, ok := d.elections[e]
	if !ok {
		r = &row{record: rule.Record{Election: e}}
		d.elections[e] = r
	}
	return r
}

// guard is the store's.
func (d *data) guard() time.Duration {
	if d.kind == oneStep {
		return 0
	}
	return guard
}

// clock reads the store's clock, on any of its servers.
func (d *data) clock() time.Time {
	now := epoch.Add(d.w.now + d.ahead)
	if g := d.guard(); g > 0 {
		now = now.Add(d.w.upTo(g) - g/2)
	}
	return now
}

// snapshot returns the election as a transaction reads it.
func (d *data) snapshot(e leadership.Election) rule.Snapshot {
	return rule.Snapshot{Record: d.row(e).record, Now: d.clock(), Guard: d.guard()}
}

// write commits a change that was decided at that time. The commits of one election, and what was
// read for them, are in the order of their times in every store; only a read may return an earlier
// time.
func (d *data) write(e leadership.Election, ch rule.Change, decided time.Time) rule.Snapshot {
	r := d.row(e)
	at := latest(d.clock(), decided, r.last.Add(1))
	r.last = at
	ch.Record = ch.Committed(at)
	before := r.record
	r.record, r.version = ch.Record, r.version+1
	for _, event := range ch.Events {
		event.At = at
		r.events = append(r.events, event)
	}
	d.truth.committed(before, ch, decided, at)
	return rule.Snapshot{Record: ch.Record, Now: at, Guard: d.guard()}
}

// isLate reports whether a heartbeat that is committed at that time comes after the end of the
// lease that it renews.
func isLate(ch rule.Change, at time.Time) bool {
	return ch.Heartbeat && !ch.Before.IsZero() && !at.Before(ch.Before)
}

func latest(t time.Time, others ...time.Time) time.Time {
	for _, other := range others {
		if other.After(t) {
			t = other
		}
	}
	return t
}

// handle is an instance's handle on the store.
type handle struct {
	service.Store // nil: what is not simulated has no methods
	*data
	seen map[leadership.Election]int // the versions that this instance has seen, to guard a write that does not read
}

var _ service.Store = (*handle)(nil)

// errAborted ends a transaction if another was committed between its read and its commit.
var errAborted = errors.New("aborted")

// Update implements service.Store.
func (h *handle) Update(ctx context.Context, e leadership.Election, _ rule.Expect, decide func(rule.Snapshot) (rule.Change, error)) (rule.Snapshot, error) {
	p := processOf(ctx)
	for range attempts {
		snap, err := h.try(p, e, decide)
		if !errors.Is(err, errAborted) {
			return snap, err
		}
		p.wait(h.w.between(time.Millisecond, 50*time.Millisecond))
	}
	return rule.Snapshot{}, unavailable("aborted too often")
}

// try is one transaction.
func (h *handle) try(p *process, e leadership.Election, decide func(rule.Snapshot) (rule.Change, error)) (rule.Snapshot, error) {
	p.wait(h.delay())
	if !p.owner.Alive() {
		return rule.Snapshot{}, errDead
	}
	if h.w.chance(h.faults.aborted) {
		h.figures.Faults++
		return rule.Snapshot{}, errAborted
	}
	snap, r := h.snapshot(e), h.row(e)
	if err := rule.Verify(snap, r.newest()); err != nil {
		return rule.Snapshot{}, err
	}
	version := r.version
	h.seen[e] = version
	ch, _, err := rule.Codec{}.Decide(snap, rule.Carried{}, decide)
	if err != nil || ch.Empty() {
		return snap, err
	}
	if now := &ch.Record.Standing.Secret; *now != snap.Record.Standing.Secret && *now != "" { // or two runs would differ
		reflect.ValueOf(now).Elem().SetString(fmt.Sprintf("%016x", h.w.random.Uint64()))
	}
	if h.kind == optimistic {
		p.wait(h.delay()) // the answer to the read
		p.pass(h.delay()) // the commit, which arrives even if the sender dies
	}
	return h.commit(p, e, ch, version, snap.Now)
}

// commit writes if no other commit came between. Its outcome may be unknown, committed or not. A
// process that died meanwhile is not told, and does nothing more.
func (h *handle) commit(p *process, e leadership.Election, ch rule.Change, version int, decided time.Time) (rule.Snapshot, error) {
	unknown := h.w.chance(h.faults.unknown)
	if unknown {
		h.figures.Faults++
	}
	if unknown && h.w.chance(0.5) || !p.owner.Alive() && h.w.chance(0.5) {
		return rule.Snapshot{}, errUnknown
	}
	if h.row(e).version != version {
		return rule.Snapshot{}, errAborted
	}
	snap := h.write(e, ch, decided)
	h.seen[e] = h.row(e).version
	p.wait(h.delay())
	switch {
	case !p.owner.Alive():
		return rule.Snapshot{}, errDead
	case unknown:
		return rule.Snapshot{}, errUnknown
	}
	return snap, nil
}

var (
	errUnknown = fmt.Errorf("simulation: %w: the reply was lost", leadership.OutcomeUnknown)
	errDead    = fmt.Errorf("simulation: %w: the instance has crashed", leadership.OutcomeUnknown)
)

func unavailable(why string) error {
	return fmt.Errorf("simulation: %w: %s", leadership.StoreUnavailable, why)
}

// delay is how long a step of a transaction takes.
func (h *handle) delay() time.Duration {
	d := h.w.upTo(5 * time.Millisecond)
	if h.w.chance(h.faults.late / 4) {
		d += h.w.upTo(20 * time.Second)
	}
	return d
}

func (r *row) newest() rule.Newest {
	if len(r.events) == 0 {
		return rule.Newest{}
	}
	last := r.events[len(r.events)-1]
	return rule.Newest{Revision: last.Revision, Token: last.Token}
}

// Get implements service.Store.
func (h *handle) Get(ctx context.Context, e leadership.Election) (rule.Snapshot, error) {
	return h.Update(ctx, e, rule.Expect{}, func(rule.Snapshot) (rule.Change, error) { return rule.Change{}, nil })
}

// Renew implements service.Store.
func (h *handle) Renew(ctx context.Context, leases []rule.Renewal) []rule.Renewed {
	answers := make([]rule.Renewed, len(leases))
	for i, c := range leases {
		if h.kind == optimistic {
			answers[i] = h.blindly(ctx, c)
		} else {
			answers[i] = h.renew(ctx, c)
		}
	}
	return answers
}

func (h *handle) renew(ctx context.Context, c rule.Renewal) rule.Renewed {
	var before time.Time
	after, err := h.Update(ctx, c.Election, rule.Expect{}, func(snap rule.Snapshot) (rule.Change, error) {
		ch, err := rule.Renew(snap, c)
		before = ch.Before
		if err != nil {
			return ch, rule.ErrNotRenewed
		}
		return ch, nil
	})
	return answered(after, before, err)
}

func answered(after rule.Snapshot, before time.Time, err error) rule.Renewed {
	if err != nil {
		return rule.Renewed{Err: err}
	}
	return after.Renewed(before)
}

// blindly renews by a write without a read, if this instance has seen the newest version; it learns
// the time of the commit afterwards.
func (h *handle) blindly(ctx context.Context, c rule.Renewal) rule.Renewed {
	p, r := processOf(ctx), h.row(c.Election)
	version, record := r.version, r.record
	if h.seen[c.Election] != version || record.LeaderID != c.CandidateID || record.Token != c.Token || record.KeyHash != c.KeyHash {
		return rule.Renewed{Err: rule.ErrNotRenewed}
	}
	p.pass(h.delay())
	before := record.LeaseEnd()
	after, err := h.commit(p, c.Election, rule.Change{Record: record, Heartbeat: true, Before: before}, version, time.Time{})
	if errors.Is(err, errAborted) {
		err = rule.ErrNotRenewed
	}
	return answered(after, before, err)
}

// Events implements service.Store.
func (h *handle) Events(_ context.Context, e leadership.Election, after leadership.Revision, limit int) ([]leadership.Event, error) {
	var found []leadership.Event
	for _, event := range h.row(e).events {
		if event.Revision > after && len(found) < limit {
			found = append(found, event)
		}
	}
	return found, nil
}

// Unannounced implements service.Store.
func (h *handle) Unannounced(_ context.Context, e leadership.Election, limit int) ([]leadership.Event, error) {
	r := h.row(e)
	first, _ := slices.BinarySearchFunc(r.events, r.told+1, func(event leadership.Event, rev leadership.Revision) int { return int(event.Revision - rev) })
	return r.events[first:min(first+limit, len(r.events))], nil
}

// MarkAnnounced implements service.Store.
func (h *handle) MarkAnnounced(_ context.Context, ids []leadership.EventID) error {
	for _, id := range ids {
		r := h.row(id.Election)
		r.told = max(r.told, id.Revision)
	}
	return nil
}

// Close implements service.Store.
func (h *handle) Close() error { return nil }
