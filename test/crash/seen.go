package crash

import (
	"context"
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/store/file"
)

// seen is what an opened image says.
type seen struct {
	now         time.Time
	snapshots   map[leadership.Election]rule.Snapshot
	events      map[leadership.Election][]leadership.Event
	listed      map[leadership.Election]bool // false: it is not listed, and must be
	unannounced map[leadership.EventID]bool
	recent      func(after time.Time) ([]leadership.Event, error)
}

const everything = leadership.MaxRecent

// see reads everything from the store, including the elections named.
func see(store *file.Store, names map[leadership.Election]election) (*seen, error) {
	ctx := context.Background()
	s := &seen{
		snapshots:   make(map[leadership.Election]rule.Snapshot),
		events:      make(map[leadership.Election][]leadership.Event),
		listed:      make(map[leadership.Election]bool),
		unannounced: make(map[leadership.EventID]bool),
		recent: func(after time.Time) ([]leadership.Event, error) {
			recent, err := store.Since(ctx, after, everything)
			return recent.Events, err
		},
	}
	listing, err := store.List(ctx, "", "", everything)
	if err != nil {
		return nil, err
	}
	if len(listing.Untrusted) > 0 {
		return nil, fmt.Errorf("%w: %q are untrusted", leadership.RecordCorrupt, listing.Untrusted)
	}
	for name := range names {
		s.listed[name] = false
	}
	for _, snap := range listing.Snapshots {
		s.listed[snap.Record.Election] = true
	}
	for name := range s.listed {
		if s.snapshots[name], err = store.Get(ctx, name); err != nil {
			return nil, err
		}
		s.now = s.snapshots[name].Now
		if s.events[name], err = store.Events(ctx, name, 0, everything); err != nil {
			return nil, err
		}
	}
	waiting, err := store.Unannounced(ctx, "", everything)
	for _, e := range waiting {
		s.unannounced[e.ID()] = true
	}
	return s, err
}
