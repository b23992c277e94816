package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"regent/leadership"
	"regent/leadership/rule"
)

// Expire records that the election's lease has run out, if it has.
func (s *Service) Expire(ctx context.Context, e leadership.Election) (leadership.Lease, error) {
	if err := e.Validate(); err != nil {
		return leadership.Lease{}, leadership.Invalid("election", err)
	}
	return s.lease(ctx, e, rule.Expect{}, rule.Expire)
}

// ExpireAll records the end of each lease that has run out, for a service that was asleep when it
// happened. It reads only elections that have a leader, and skips those whose record cannot be
// trusted or needs a newer program. It continues where the last call stopped, so that several calls
// reach all. It returns how many it recorded, even with an error: one election that fails or is
// slow does not stop the others, and the error is the first.
func (s *Service) ExpireAll(ctx context.Context) (expired int, err error) {
	var failed error
	after, _ := s.expiring.Swap(leadership.Election("")).(leadership.Election)
	defer func() {
		if ctx.Err() != nil {
			s.expiring.Store(after) // begin with this page again
		}
	}()
	for whole := false; ; {
		whole = whole || after == ""
		held, err := s.store.Held(ctx, after, leadership.MaxPageSize)
		if err != nil {
			return expired, cmp.Or(failed, err)
		}
		var over []leadership.Election
		for _, snap := range held.Snapshots {
			if snap.Over() {
				over = append(over, snap.Record.Election)
			}
		}
		n, err := s.changeAll(ctx, over, rule.Expire)
		expired, failed = expired+n, cmp.Or(failed, err, ctx.Err())
		if ctx.Err() != nil {
			return expired, failed
		}
		if after = held.Next; after == "" && whole {
			return expired, failed
		}
	}
}

// RetireAll deletes the elections that have been vacant for too long; see rule.Retire. It also does
// what TellAll does. It returns how many it deleted, even with an error, as ExpireAll does.
func (s *Service) RetireAll(ctx context.Context) (retired int, err error) {
	return s.dueAll(ctx, rule.Retire)
}

// TellAll tells seats of changes whose callers stopped before all seats were told.
func (s *Service) TellAll(ctx context.Context) error {
	_, err := s.dueAll(ctx, func(rule.Snapshot) (rule.Change, error) { return rule.Change{}, nil })
	return err
}

// dueAll runs a rule on each election whose Record.DueAt has come, and tells its seats.
func (s *Service) dueAll(ctx context.Context, decide func(rule.Snapshot) (rule.Change, error)) (changed int, err error) {
	now, err := s.Now(ctx)
	if err != nil {
		return 0, err
	}
	var failed error
	tried := make(map[leadership.Election]bool)
	for {
		due, err := s.store.Retirable(ctx, now, leadership.MaxPageSize+len(tried)-changed) // those that are left come first
		if err != nil {
			return changed, cmp.Or(failed, err)
		}
		whole := len(due) < leadership.MaxPageSize+len(tried)-changed
		due = slices.DeleteFunc(due, func(e leadership.Election) bool { return tried[e] })
		for _, e := range due {
			tried[e] = true
		}
		n, err := s.changeAll(ctx, due, decide)
		changed, failed = changed+n, cmp.Or(failed, err, ctx.Err())
		if whole || len(due) == 0 || ctx.Err() != nil {
			return changed, failed
		}
	}
}

// changeAll runs a rule on each of the elections, a few at a time, and tells their seats of changes
// that they may not have been told. It returns how many the rule changed, and the first error.
// Elections that need a newer program are left to that program.
func (s *Service) changeAll(ctx context.Context, all []leadership.Election, decide func(rule.Snapshot) (rule.Change, error)) (changed int, err error) {
	var mu sync.Mutex // guards changed and err
	each(len(all), func(i int) {
		wrote := false
		snap, failed := s.update(ctx, all[i], rule.Expect{}, func(snap rule.Snapshot) (rule.Change, error) {
			ch, err := decide(snap)
			wrote = !ch.Empty()
			return ch, err
		})
		if failed == nil && snap.Record.Standing.Untold > 0 {
			failed = s.tell(ctx, snap)
		}
		mu.Lock()
		defer mu.Unlock()
		if failed == nil && wrote {
			changed++
		}
		if !errors.Is(failed, leadership.RecordTooNew) {
			err = cmp.Or(err, failed)
		}
	})
	return changed, err
}
