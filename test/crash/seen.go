package crash

import (
	"context"
	"errors"
	"fmt"
	"time"

	"regent/leadership"
	"regent/store/file"
)

// seen is what an opened image says. Of what it refuses by name there is only the refusal.
type seen struct {
	now         time.Time
	snapshots   map[leadership.Election]leadership.Snapshot
	events      map[leadership.Election][]leadership.Event
	listed      map[leadership.Election]bool // false: it is not listed, and must be
	untrusted   map[leadership.Election]bool
	unannounced map[leadership.EventID]bool
	recent      func(after time.Time) ([]leadership.Event, error)
	refusals    []error
}

// refused keeps a refusal, and returns other errors.
func (s *seen) refused(err error) (bool, error) {
	if errors.Is(err, leadership.RecordCorrupt) || errors.Is(err, leadership.StoreUnavailable) {
		s.refusals = append(s.refusals, err)
		return true, nil
	}
	return false, err
}

const everything = leadership.MaxRecent

// see reads everything from the store, including the elections named.
func see(store *file.Store, names map[leadership.Election]election) (*seen, error) {
	ctx := context.Background()
	s := &seen{
		snapshots:   make(map[leadership.Election]leadership.Snapshot),
		events:      make(map[leadership.Election][]leadership.Event),
		listed:      make(map[leadership.Election]bool),
		untrusted:   make(map[leadership.Election]bool),
		unannounced: make(map[leadership.EventID]bool),
		recent: func(after time.Time) ([]leadership.Event, error) {
			recent, err := store.Since(ctx, after, everything)
			return recent.Events, err
		},
	}
	listing, err := store.List(ctx, "", "", everything)
	if no, err := s.refused(err); err != nil || no {
		return s, err
	}
	for _, snap := range listing.Snapshots {
		s.listed[snap.Record.Election] = true
	}
	for _, name := range listing.Untrusted {
		s.untrusted[name] = true
		s.refusals = append(s.refusals, fmt.Errorf("%w: %q is untrusted", leadership.RecordCorrupt, name))
	}
	for name := range names {
		if !s.untrusted[name] {
			s.listed[name] = s.listed[name] || false
		}
	}
	for name := range s.listed {
		if err := s.election(ctx, store, name); err != nil {
			return s, err
		}
	}
	waiting, err := store.Unannounced(ctx, "", everything)
	if no, err := s.refused(err); err != nil || no {
		s.unannounced = nil
		return s, err
	}
	for _, e := range waiting {
		s.unannounced[e.ID()] = true
	}
	return s, nil
}

func (s *seen) election(ctx context.Context, store *file.Store, name leadership.Election) error {
	snap, err := store.Get(ctx, name)
	if no, err := s.refused(err); err != nil {
		return err
	} else if !no {
		s.snapshots[name], s.now = snap, snap.Now
	}
	events, err := store.Events(ctx, name, 0, everything)
	if no, err := s.refused(err); err != nil {
		return err
	} else if !no {
		s.events[name] = events
	}
	return nil
}
