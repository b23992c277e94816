package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"regent/leadership"
	"regent/store"
)

// margin is how far tokens are raised above the highest revision that was seen: a killed process
// may have granted more than it saw.
const margin = 1_000_000

// restore imports what was saved, and sees to it that no token is granted twice and that no lease
// overlaps one of the last run. It returns a sentence about it. One case escapes it: an election
// that was created just before a kill, and so is neither saved nor seen, begins anew.
//
// If the last run was killed, all elections are raised as after a backup; see store.Raise. If it
// was stopped, the data are complete. Then only elections that had a leader are raised, by one
// revision: the emulator has moved the times of their leases, which must have ended before another
// candidate leads.
func (s *state) restore(ctx context.Context, host, spec string) (done string, err error) {
	s.host = host
	if s.saved.Export > 0 {
		metadata := filepath.Join(s.exportPath(s.saved.Export), exportName, exportName+".overall_export_metadata")
		if err := s.ask(ctx, "import", map[string]string{"database": s.database(), "export_directory": metadata}); err != nil {
			return "", err
		}
	}
	leases, err := store.OpenExisting(ctx, spec, store.Config{})
	if err != nil {
		return "", err
	}
	defer leases.Close()
	switch {
	case !s.saved.Clean:
		done, err = s.raiseAll(ctx, leases)
	case s.saved.Export > 0:
		done, err = raiseHeld(ctx, leases)
	default:
		done = "the data will be kept in " + s.dir
	}
	if err != nil {
		return "", err
	}
	// From here on a killed process leaves data that are older than what was granted.
	return done, s.save(ctx, false)
}

// raiseAll raises every election that is saved, or was seen since.
func (s *state) raiseAll(ctx context.Context, leases store.Store) (done string, err error) {
	r := store.Raising{Above: s.saved.Highest + margin}
	for e := range s.seen {
		r.Elections = append(r.Elections, e)
	}
	raised, err := store.Raise(ctx, leases, r)
	if err == nil && len(raised.Untrusted) > 0 {
		err = fmt.Errorf("these records are corrupt: %s", store.Quoted(raised.Untrusted))
	}
	if err != nil {
		return "", err
	}
	locked := raised.LockedFor
	for e, one := range s.seen { // a lease that the data do not have may be longer than is usual
		if one.Lease > leadership.DefaultLeaseDuration {
			d, err := raise(ctx, leases, e, r.Above+1, one.Lease)
			if err != nil {
				return "", err
			}
			locked = max(locked, d)
		}
	}
	s.saved.Highest = r.Above + 1
	return fmt.Sprintf("data of a run that was killed: %d elections are raised to fencing token %d, as after a backup (regent raise --help); all can be led in %v. An election that was first used in the moments before the kill may begin anew, at token 1",
		raised.Raised+raised.Present, r.Above, locked.Round(time.Second)), nil
}

// raiseHeld raises the elections that have a leader.
func raiseHeld(ctx context.Context, leases store.Store) (done string, err error) {
	var held []leadership.Snapshot
	for after := leadership.Election(""); ; {
		page, err := leases.Held(ctx, after, 100)
		if err != nil {
			return "", err
		}
		held = append(held, page.Snapshots...)
		if after = page.Next; after == "" {
			break
		}
	}
	locked := time.Duration(0)
	for _, s := range held {
		d, err := raise(ctx, leases, s.Record.Election, s.Record.Revision+1, 0)
		if err != nil {
			return "", err
		}
		locked = max(locked, d)
	}
	if len(held) == 0 {
		return "the data of the last run are here", nil
	}
	return fmt.Sprintf("the data of the last run are here; %d elections had a leader, and can be led again in %v", len(held), locked.Round(time.Second)), nil
}

// raise raises one election, and returns how long it cannot be led.
func raise(ctx context.Context, leases leadership.Store, e leadership.Election, above leadership.Revision, lock time.Duration) (time.Duration, error) {
	snap, err := leases.Update(ctx, e, func(s leadership.Snapshot) (leadership.Change, error) {
		return leadership.Raise(s, leadership.RaiseCommand{Above: above, Lock: lock})
	})
	if err != nil {
		return 0, fmt.Errorf("raise %q: %w", e, err)
	}
	return snap.Lease().LockedFor, nil
}
