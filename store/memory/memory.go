// Package memory is the reference implementation of service.Store and service.Journal:
// everything in one process, behind one mutex, lost when the process ends. The other stores must
// answer as this one does. It serves tests, simulations and first steps.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/internal/history"
	"regent/store/internal/logs"
	"regent/store/internal/retirement"
)

// Config says how to make a store; its zero value works.
type Config struct {
	// Now is the store's clock. It must never go back. nil: the process's monotonic clock.
	Now func() time.Time
	// History is how long events are kept; 0 for rule.DefaultHistory. Older ones are
	// forgotten as their election changes; its newest event always stays.
	History time.Duration
	// Begins is where the history begins: Since refuses earlier instants. Zero: no beginning.
	Begins time.Time
	// Codec reads and writes policy and standing; the zero Codec is this program's.
	Codec rule.Codec
}

// Store is one handle on data in memory.
type Store struct {
	data   *data
	codec  rule.Codec
	closed atomic.Bool
}

// data is shared by all handles.
type data struct {
	now     func() time.Time
	history history.Span
	begins  time.Time

	mu        sync.Mutex // guards all below
	records   map[leadership.Election]stored
	events    map[leadership.Election][]leadership.Event
	announced map[leadership.EventID]bool
	logs      map[rule.LogID]logs.Log
}

// stored is a record as it is stored: Policy and Standing only as their text.
type stored struct {
	record  rule.Record
	carried rule.Carried
}

var _ service.Store = (*Store)(nil)

// New returns a handle on new, empty data.
func New(c Config) *Store {
	now := c.Now
	if now == nil {
		now = time.Now
	}
	return &Store{codec: c.Codec, data: &data{
		now:       now,
		history:   history.Span(cmp.Or(c.History, rule.DefaultHistory)),
		begins:    c.Begins,
		records:   make(map[leadership.Election]stored),
		events:    make(map[leadership.Election][]leadership.Event),
		announced: make(map[leadership.EventID]bool),
		logs:      make(map[rule.LogID]logs.Log),
	}}
}

// Open returns one more handle on the same data. Closing one leaves the others as they are.
func (s *Store) Open() *Store { return s.OpenAs(s.codec) }

// OpenAs is Open for another version of the program.
func (s *Store) OpenAs(c rule.Codec) *Store { return &Store{data: s.data, codec: c} }

// Close ends this handle. The data remain while there is another handle.
func (s *Store) Close() error {
	s.closed.Store(true)
	return nil
}

// lock returns the locked data for a call, which must unlock them, or an error if the handle is
// closed or ctx has ended.
func (s *Store) lock(ctx context.Context) (*data, error) {
	if s.closed.Load() {
		return nil, fmt.Errorf("memory: %w: the store is closed", leadership.StoreUnavailable)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("memory: %w: %w", leadership.StoreUnavailable, err)
	}
	s.data.mu.Lock()
	return s.data, nil
}

func (s *Store) Update(ctx context.Context, e leadership.Election, _ rule.Expect, decide func(rule.Snapshot) (rule.Change, error)) (rule.Snapshot, error) {
	d, err := s.lock(ctx)
	if err != nil {
		return rule.Snapshot{}, err
	}
	defer d.mu.Unlock()
	snap, err := s.read(e)
	if err != nil {
		return rule.Snapshot{}, err
	}
	ch, carried, err := s.codec.Decide(snap, rule.Carried{}, decide)
	if err != nil || ch.Empty() {
		return snap, err
	}
	for _, event := range ch.Events {
		event.At = snap.Now
		d.events[e] = append(d.events[e], event)
	}
	d.prune(e, snap.Now)
	snap.Record = ch.Committed(snap.Now)
	kept := snap.Record
	kept.Policy, kept.Standing = rule.Policy{}, rule.Standing{}
	d.records[e] = stored{kept, carried}
	return snap, nil
}

// read decodes and verifies an election; data.mu must be held.
func (s *Store) read(e leadership.Election) (rule.Snapshot, error) {
	d := s.data
	snap := rule.Snapshot{Record: rule.Record{Election: e}, Now: d.now()}
	if kept, ok := d.records[e]; ok {
		snap.Record = kept.record
		if err := s.codec.Decode(&snap.Record, kept.carried); err != nil {
			return rule.Snapshot{}, err
		}
	}
	if err := rule.Verify(snap, d.newest(e)); err != nil {
		return rule.Snapshot{}, err
	}
	return snap, nil
}

// prune deletes the events of an election that need no longer be kept.
func (d *data) prune(e leadership.Election, now time.Time) {
	events := d.events[e]
	for len(events) > 1 && d.history.Over(events[0].At, now) {
		delete(d.announced, events[0].ID())
		events = events[1:]
	}
	d.events[e] = events
}

func (d *data) newest(e leadership.Election) rule.Newest {
	events := d.events[e]
	if len(events) == 0 {
		return rule.Newest{}
	}
	last := events[len(events)-1]
	return rule.Newest{Revision: last.Revision, Token: last.Token}
}

func (s *Store) Get(ctx context.Context, e leadership.Election) (rule.Snapshot, error) {
	return s.Update(ctx, e, rule.Expect{}, func(rule.Snapshot) (rule.Change, error) { return rule.Change{}, nil })
}

func (s *Store) List(ctx context.Context, prefix string, after leadership.Election, limit int) (rule.Listing, error) {
	d, err := s.lock(ctx)
	if err != nil {
		return rule.Listing{}, err
	}
	defer d.mu.Unlock()
	names := d.names(prefix, after)
	var listing rule.Listing
	if len(names) > limit {
		names = names[:limit]
		listing.Next = names[limit-1]
	}
	for _, e := range names {
		snap, err := s.read(e)
		listing.Add(e, snap, err)
	}
	return listing, nil
}

// names returns, in order, the elections that begin with prefix and come after the given one; all
// that have a history, with or without a record.
func (d *data) names(prefix string, after leadership.Election) []leadership.Election {
	var names []leadership.Election
	for e := range d.events {
		if strings.HasPrefix(string(e), prefix) && e > after {
			names = append(names, e)
		}
	}
	slices.Sort(names)
	return names
}

// Held implements service.Store, in the order of names.
func (s *Store) Held(ctx context.Context, after leadership.Election, limit int) (rule.Listing, error) {
	d, err := s.lock(ctx)
	if err != nil {
		return rule.Listing{}, err
	}
	defer d.mu.Unlock()
	var listing rule.Listing
	var last leadership.Election
	n := 0
	for _, e := range d.names("", after) {
		if d.records[e].record.LeaderID == "" {
			continue
		}
		if n == limit {
			listing.Next = last
			break
		}
		snap, err := s.read(e)
		listing.Add(e, snap, err)
		last, n = e, n+1
	}
	return listing, nil
}

func (s *Store) Retirable(ctx context.Context, at time.Time, limit int) ([]leadership.Election, error) {
	d, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	due := make(retirement.Plan)
	for e := range d.records {
		if snap, err := s.read(e); err == nil {
			due.Set(&snap.Record)
		}
	}
	return due.By(at, limit), nil
}

func (s *Store) Renew(ctx context.Context, leases []rule.Renewal) []rule.Renewed {
	answers := make([]rule.Renewed, len(leases))
	for i, c := range leases {
		answers[i] = s.renew(ctx, c)
	}
	return answers
}

func (s *Store) renew(ctx context.Context, c rule.Renewal) rule.Renewed {
	var before time.Time
	after, err := s.Update(ctx, c.Election, rule.Expect{}, func(snap rule.Snapshot) (rule.Change, error) {
		ch, err := rule.Renew(snap, c)
		if err != nil {
			return ch, rule.ErrNotRenewed
		}
		before = ch.Before
		return ch, nil
	})
	if err != nil {
		return rule.Renewed{Err: err}
	}
	return after.Renewed(before)
}

func (s *Store) Events(ctx context.Context, e leadership.Election, after leadership.Revision, limit int) ([]leadership.Event, error) {
	d, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	var found []leadership.Event
	for _, event := range d.events[e] {
		if event.Revision > after && len(found) < limit {
			found = append(found, event)
		}
	}
	return found, nil
}

func (s *Store) Since(ctx context.Context, after time.Time, limit int) (rule.Recent, error) {
	d, err := s.lock(ctx)
	if err != nil {
		return rule.Recent{}, err
	}
	defer d.mu.Unlock()
	if after.Before(d.begins) {
		return rule.Recent{}, history.Compacted(after, d.begins)
	}
	now := d.now()
	var found []leadership.Event
	for _, events := range d.events {
		for _, event := range events {
			if event.At.After(after) {
				found = append(found, event)
			}
		}
	}
	return d.history.Since(after, now, found, limit)
}

func (s *Store) Unannounced(ctx context.Context, e leadership.Election, limit int) ([]leadership.Event, error) {
	d, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	elections := []leadership.Election{e}
	if e == "" {
		elections = slices.Sorted(maps.Keys(d.events))
	}
	var found []leadership.Event
	for _, e := range elections {
		for _, event := range d.events[e] {
			if len(found) == limit {
				return found, nil
			}
			if !d.announced[event.ID()] {
				found = append(found, event)
			}
		}
	}
	return found, nil
}

func (s *Store) MarkAnnounced(ctx context.Context, ids []leadership.EventID) error {
	d, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	for _, id := range ids {
		if slices.ContainsFunc(d.events[id.Election], func(event leadership.Event) bool { return event.ID() == id }) {
			d.announced[id] = true
		}
	}
	return nil
}
