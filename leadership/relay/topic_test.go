package relay_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/store/memory"
)

// topic accepts copies of events, and looks at each: whether it was committed, and whether the one before it is out.
type topic struct {
	t     *testing.T
	store *memory.Store

	mu       sync.Mutex // guards all below
	accepted []leadership.Event
	out      map[leadership.EventID]bool
	hearers  []func(leadership.Event)
}

func newTopic(t *testing.T, store *memory.Store) *topic {
	return &topic{t: t, store: store, out: make(map[leadership.EventID]bool)}
}

// accept takes a copy and lets all hear of it.
func (p *topic) accept(e leadership.Event) {
	p.t.Helper()
	ctx := context.WithoutCancel(p.t.Context()) // the last copies come when the test is over
	if committed, err := p.store.Events(ctx, e.Election, e.Revision-1, 1); err != nil || len(committed) != 1 || committed[0] != e {
		p.t.Errorf("%s was announced and never committed: %v, %v", name(e.ID()), committed, err)
	}
	p.mu.Lock()
	before := leadership.EventID{Election: e.Election, Revision: e.Revision - 1}
	if e.Revision > 1 && !p.out[e.ID()] && !p.out[before] {
		p.t.Errorf("%s overtook %s", name(e.ID()), name(before))
	}
	p.accepted = append(p.accepted, e)
	p.out[e.ID()] = true
	hearers := slices.Clone(p.hearers)
	p.mu.Unlock()
	for _, hear := range hearers {
		hear(e)
	}
}

func (p *topic) isOut(id leadership.EventID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out[id]
}

// duplicates is how many copies were accepted beyond the first.
func (p *topic) duplicates() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.accepted) - len(p.out)
}

// copies is what was accepted of an election, as "1 2 2 3".
func (p *topic) copies(e leadership.Election) []leadership.Revision {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []leadership.Revision
	for _, a := range p.accepted {
		if a.Election == e {
			found = append(found, a.Revision)
		}
	}
	return found
}

// expect says which copies of an election must have been accepted.
func (p *topic) expect(e leadership.Election, want ...leadership.Revision) {
	p.t.Helper()
	if diff := cmp.Diff(want, p.copies(e)); diff != "" {
		p.t.Errorf("announced of %q (-want +got):\n%s", e, diff)
	}
}

// checkEV is the property EV at the end of a history: every revision of every election is out. That first deliveries are in order, and that
// nothing is announced which was not committed, was looked at with each copy. It returns how many events there are.
func (p *topic) checkEV() (events int) {
	p.t.Helper()
	listing, err := p.store.List(p.t.Context(), "", "", 1000)
	if err != nil || listing.Next != "" {
		p.t.Fatalf("list: %v, next %q", err, listing.Next)
	}
	for _, snap := range listing.Snapshots {
		for r := range snap.Record.Revision {
			if id := (leadership.EventID{Election: snap.Record.Election, Revision: r + 1}); !p.isOut(id) {
				p.t.Errorf("%s was never announced", name(id))
			}
		}
		events += int(snap.Record.Revision)
	}
	if left, err := p.store.Unannounced(p.t.Context(), "", 10); err != nil || len(left) > 0 {
		p.t.Errorf("the outbox still has %v, %v", left, err)
	}
	return events
}

// expectOut says how many events must be out.
func (p *topic) expectOut(want int) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := len(p.out); got != want {
		p.t.Errorf("%d events are announced, want %d", got, want)
	}
}

func name(id leadership.EventID) string { return fmt.Sprintf("%s/%d", id.Election, id.Revision) }
