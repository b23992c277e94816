package service

import (
	"cmp"
	"context"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// Get reads an election from the store, strongly. A deleted one is NotFound.
func (s *Service) Get(ctx context.Context, e leadership.Election) (leadership.Lease, error) {
	snap, err := s.look(ctx, e)
	if err != nil {
		return leadership.Lease{}, err
	}
	return snap.Lease(), nil
}

// look reads an election that was seen and is not deleted.
func (s *Service) look(ctx context.Context, e leadership.Election) (rule.Snapshot, error) {
	if err := e.Validate(); err != nil {
		return rule.Snapshot{}, leadership.Invalid("election", err)
	}
	snap, err := s.store.Get(ctx, e)
	switch {
	case err != nil:
		return rule.Snapshot{}, err
	case !snap.Exists():
		return rule.Snapshot{}, snap.RefuseUnseen()
	case snap.Record.Deleted:
		return rule.Snapshot{}, snap.Refuse(leadership.NotFound, "election %q is deleted; configuring it brings it back, and its fencing token goes on from %d", e, snap.Record.Token)
	}
	return snap, nil
}

// List reads a page of elections in the order of their names, without the deleted ones.
func (s *Service) List(ctx context.Context, r leadership.ListRequest) (leadership.Page, error) {
	if err := r.Validate(); err != nil {
		return leadership.Page{}, err
	}
	listing, err := s.store.List(ctx, r.Prefix, r.After, cmp.Or(r.Limit, leadership.DefaultPageSize))
	if err != nil {
		return leadership.Page{}, err
	}
	return page(listing), nil
}

// page leaves out the deleted elections.
func page(l rule.Listing) leadership.Page {
	page := leadership.Page{Next: l.Next, Leases: make([]leadership.Lease, 0, len(l.Snapshots))}
	for i := range l.Snapshots {
		if snap := &l.Snapshots[i]; !snap.Record.Deleted {
			page.Leases = append(page.Leases, snap.Lease())
		}
	}
	return page
}

// CensusPage reads a page of MaxPageSize elections after Next of the previous page: those whose
// names begin with prefix or, if held, those that have a leader, in an order of the store's own.
func (s *Service) CensusPage(ctx context.Context, prefix string, held bool, after leadership.Election) (leadership.Page, error) {
	if held {
		listing, err := s.store.Held(ctx, after, leadership.MaxPageSize)
		return page(listing), err
	}
	listing, err := s.store.List(ctx, prefix, after, leadership.MaxPageSize)
	return page(listing), err
}

// Events reads a part of an election's history, oldest first. A deleted election still has its
// history.
func (s *Service) Events(ctx context.Context, r leadership.EventsRequest) ([]leadership.Event, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	limit := cmp.Or(r.Limit, leadership.DefaultPageSize)
	events, err := s.store.Events(ctx, r.Election, r.After, limit)
	if err != nil || len(events) > 0 {
		return gapless(r, events, err)
	}
	snap, err := s.store.Get(ctx, r.Election)
	switch {
	case err != nil:
		return nil, err
	case !snap.Exists():
		return nil, snap.RefuseUnseen()
	case snap.Record.Revision <= r.After:
		return nil, nil
	}
	if events, err = s.store.Events(ctx, r.Election, r.After, limit); err == nil && len(events) == 0 {
		return nil, leadership.Compacted(r.Election, snap.Record.Revision+1)
	}
	return gapless(r, events, err)
}

// gapless returns HistoryCompacted if the events have a gap, among them or after r.After: the
// missing events are no longer kept.
func gapless(r leadership.EventsRequest, events []leadership.Event, err error) ([]leadership.Event, error) {
	if err != nil {
		return nil, err
	}
	previous, oldest := r.After, leadership.Revision(0)
	for _, e := range events {
		if e.Revision != previous+1 {
			oldest = e.Revision
		}
		previous = e.Revision
	}
	if oldest > 0 {
		return nil, leadership.Compacted(r.Election, oldest)
	}
	return events, nil
}

// Since reads the events of all elections that were committed after the instant, at most MaxRecent;
// see Store.Since.
func (s *Service) Since(ctx context.Context, after time.Time) (rule.Recent, error) {
	return s.store.Since(ctx, after, leadership.MaxRecent)
}

// Now reads the store's clock.
func (s *Service) Now(ctx context.Context) (time.Time, error) {
	snap, err := s.store.Get(ctx, "NOW") // no election has the name, and one never seen has a time too
	return snap.Now, err
}

// walk visits all elections in the order of their names.
func (s *Service) walk(ctx context.Context, prefix string, visit func(rule.Snapshot) error) error {
	var after leadership.Election
	for {
		listing, err := s.store.List(ctx, prefix, after, leadership.MaxPageSize)
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
func (s *Service) Overrides(ctx context.Context, e leadership.Election) ([]leadership.Override, error) {
	snap, err := s.look(ctx, e)
	if err != nil {
		return nil, err
	}
	return snap.Orders().At(snap.Now), nil
}

// Explain returns why a candidate does not lead; see rule.Explain. It makes one strong read, or two
// for an election that is a part of another one.
func (s *Service) Explain(ctx context.Context, r leadership.ExplainRequest) (leadership.Explanation, error) {
	if err := r.CandidateID.Validate(); err != nil {
		return leadership.Explanation{}, leadership.Invalid("candidateId", err)
	}
	snap, err := s.look(ctx, r.Election)
	if err != nil {
		return leadership.Explanation{}, err
	}
	snap.Halts = r.Halts
	x := rule.Explain(snap, r.CandidateID)
	switch r := snap.Record; {
	case x.Leads:
	case r.Policy.Seats > 0:
		return s.explainSeats(ctx, snap, x)
	case r.Standing.Seat > 0: // the whole's orders apply to it
		of, _, _ := r.Election.SeatOf()
		whole, err := s.whole(ctx, of)
		if err != nil {
			return leadership.Explanation{}, err
		}
		x.Causes = append(rule.Explain(*whole, x.CandidateID).Causes, x.Causes...)
	}
	if parent := snap.Record.Policy.Delegation.Parent; parent != "" && !snap.Live() {
		p, err := s.parent(ctx, parent)
		if err != nil {
			return leadership.Explanation{}, err
		}
		if p.LeaderID == "" || p.Short(snap.Now) {
			orphaned(&x)
		}
	}
	return x, nil
}

// orphaned adds the cause that the election's parent has no leader, after the orders and before the
// causes that depend on other candidates.
func orphaned(x *leadership.Explanation) {
	at := slices.IndexFunc(x.Causes, func(c leadership.Cause) bool {
		return !slices.Contains([]leadership.Reason{leadership.ReasonBanned, leadership.ReasonAssigned, leadership.ReasonPaused, leadership.ReasonHalted, leadership.ReasonApproval, leadership.ReasonParked}, c.Code)
	})
	if at < 0 {
		at = len(x.Causes)
	}
	x.Causes = slices.Insert(x.Causes, at, leadership.Cause{Code: leadership.ReasonParent})
}
