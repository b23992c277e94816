package leadership

import (
	"context"
	"time"
)

// Get reads an election from the store, strongly. A deleted one is NotFound.
func (s *Service) Get(ctx context.Context, e Election) (Lease, error) {
	snap, err := s.look(ctx, e)
	if err != nil {
		return Lease{}, err
	}
	return snap.Lease(), nil
}

// look reads an election that was seen and is not deleted.
func (s *Service) look(ctx context.Context, e Election) (Snapshot, error) {
	if err := e.Validate(); err != nil {
		return Snapshot{}, invalid("election", err)
	}
	snap, err := s.store.Get(ctx, e)
	switch {
	case err != nil:
		return Snapshot{}, err
	case !snap.exists():
		return Snapshot{}, snap.refuseUnseen()
	case snap.Record.Deleted:
		return Snapshot{}, snap.refuse(NotFound, "election %q is deleted; configuring it brings it back, and its fencing token goes on from %d", e, snap.Record.Token)
	}
	return snap, nil
}

// List reads a page of elections in the order of their names, without the deleted ones.
func (s *Service) List(ctx context.Context, r ListRequest) (Page, error) {
	limit, err := r.validate()
	if err != nil {
		return Page{}, err
	}
	listing, err := s.store.List(ctx, r.Prefix, r.After, limit)
	if err != nil {
		return Page{}, err
	}
	return listing.page(), nil
}

// page leaves out the deleted elections.
func (l Listing) page() Page {
	page := Page{Next: l.Next}
	for _, snap := range l.Snapshots {
		if !snap.Record.Deleted {
			page.Leases = append(page.Leases, snap.Lease())
		}
	}
	return page
}

// CensusPage reads a page of MaxPageSize after Next of the page before: of all elections whose
// names begin with prefix or, if held, of those that have a leader, in an order of the store's own.
func (s *Service) CensusPage(ctx context.Context, prefix string, held bool, after Election) (Page, error) {
	if held {
		listing, err := s.store.Held(ctx, after, MaxPageSize)
		return listing.page(), err
	}
	listing, err := s.store.List(ctx, prefix, after, MaxPageSize)
	return listing.page(), err
}

// Events reads a part of an election's history, oldest first. A deleted election still has its
// history.
func (s *Service) Events(ctx context.Context, r EventsRequest) ([]Event, error) {
	limit, err := r.validate()
	if err != nil {
		return nil, err
	}
	events, err := s.store.Events(ctx, r.Election, r.After, limit)
	if err != nil || len(events) > 0 {
		return gapless(r, events, err)
	}
	snap, err := s.store.Get(ctx, r.Election)
	switch {
	case err != nil:
		return nil, err
	case !snap.exists():
		return nil, snap.refuseUnseen()
	case snap.Record.Revision <= r.After:
		return nil, nil
	}
	if events, err = s.store.Events(ctx, r.Election, r.After, limit); err == nil && len(events) == 0 {
		return nil, Compacted(r.Election, snap.Record.Revision+1)
	}
	return gapless(r, events, err)
}

// gapless refuses events that do not follow each other, or the revision that was asked for: those
// between are no longer kept.
func gapless(r EventsRequest, events []Event, err error) ([]Event, error) {
	if err != nil {
		return nil, err
	}
	previous, oldest := r.After, Revision(0)
	for _, e := range events {
		if e.Revision != previous+1 {
			oldest = e.Revision
		}
		previous = e.Revision
	}
	if oldest > 0 {
		return nil, Compacted(r.Election, oldest)
	}
	return events, nil
}

// Since reads what was committed after the instant in all elections, at most MaxRecent events; see
// Store.Since.
func (s *Service) Since(ctx context.Context, after time.Time) (Recent, error) {
	return s.store.Since(ctx, after, MaxRecent)
}

// Now reads the store's clock.
func (s *Service) Now(ctx context.Context) (time.Time, error) {
	snap, err := s.store.Get(ctx, "NOW") // no election has the name, and one never seen has a time too
	return snap.Now, err
}

// walk visits all elections in the order of their names.
func (s *Service) walk(ctx context.Context, prefix string, visit func(Snapshot) error) error {
	var after Election
	for {
		listing, err := s.store.List(ctx, prefix, after, MaxPageSize)
		if err != nil {
			return err
		}
		for _, snap := range listing.Snapshots {
			if err := visit(snap); err != nil {
				return err
			}
		}
		if after = listing.Next; after == "" {
			return nil
		}
	}
}

// Overrides reads the standing orders of an election from the store, strongly.
func (s *Service) Overrides(ctx context.Context, e Election) ([]Override, error) {
	snap, err := s.look(ctx, e)
	if err != nil {
		return nil, err
	}
	return snap.Orders().At(snap.Now), nil
}

// Explain says why a candidate does not lead, by one strong read, or two of an election that is a
// part of another one; see the function of that name.
func (s *Service) Explain(ctx context.Context, r ExplainRequest) (Explanation, error) {
	if err := r.CandidateID.Validate(); err != nil {
		return Explanation{}, invalid("candidateId", err)
	}
	snap, err := s.look(ctx, r.Election)
	if err != nil {
		return Explanation{}, err
	}
	x := Explain(snap, r.CandidateID)
	if parent := snap.Record.Policy.Delegation.Parent; parent != "" && !snap.Live() {
		p, err := s.parent(ctx, parent)
		if err != nil {
			return Explanation{}, err
		}
		if p.LeaderID == "" || p.short(snap.Now) {
			x.orphaned()
		}
	}
	return x, nil
}
