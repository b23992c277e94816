package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// Raising says which elections to raise, and how far.
type Raising struct {
	// Prefix chooses the elections of the store to raise: those whose names begin with it; "" is
	// all.
	Prefix string
	// Elections are raised as well, even if the store does not know them: those that began after
	// the backup.
	Elections []leadership.Election
	// Above and Lock are as in rule.RaiseCommand.
	Above leadership.Revision
	Lock  time.Duration

	seats map[leadership.Election]bool // seats raised with their elections; the store may not know them
}

// Raised is the outcome of Raise.
type Raised struct {
	Raised  int // elections
	Present int // elections that were raised before
	// LockedFor is how long, from the end of the call, until every election that was raised now may
	// be led again.
	LockedFor time.Duration
	// Untrusted are the records that cannot be trusted. They were not changed, and grant no lease.
	Untrusted []leadership.Election
	// Logs are the logs that cannot be trusted, such as "the journal of jobs". They were not
	// changed, and no leader can write to them.
	Logs []string
}

// Raise raises the elections of a store that was restored from a backup above every revision and
// token that was seen after the backup; see rule.Raise. It also raises the marks of their logs, so
// that no leader from before the backup can write to them. No server may use the store meanwhile.
//
// For an election with seats it raises all seats that the election may ever have, because a seat
// that the store does not know may have been led after the backup. Such a seat is created as
// deleted, and continues from there.
//
// Raise first reads everything. If Above is too low for an election, it returns InvalidArgument
// with the highest such election, and writes nothing; likewise RecordTooNew, if an election needs a
// newer program. If it is interrupted, make the same call again: it continues. Once servers use the
// store again the same call is refused, or does nothing.
func Raise(ctx context.Context, s Store, r Raising) (Raised, error) {
	elections, untrusted, err := names(ctx, s, r.Prefix)
	if err != nil {
		return Raised{}, err
	}
	for _, e := range r.Elections {
		if !slices.Contains(untrusted, e) {
			elections = append(elections, e)
		}
	}
	slices.Sort(elections)
	r.seats = make(map[leadership.Election]bool)
	elections, corrupt, err := r.check(ctx, s, slices.Compact(elections))
	done := Raised{Untrusted: append(untrusted, corrupt...)}
	if err != nil {
		return done, err
	}
	if err := r.raiseLogs(ctx, s, &done); err != nil {
		return done, err
	}
	for _, e := range elections {
		if err := r.raise(ctx, s, e, &done); err != nil {
			return done, err
		}
	}
	return done, nil
}

func (r Raising) rule(s rule.Snapshot) (rule.Change, error) {
	return rule.Raise(s, rule.RaiseCommand{Above: r.Above, Lock: r.Lock, Deleted: r.seats[s.Record.Election]})
}

// check returns the elections that can be raised and those that cannot be trusted, or the error of
// an election that prevents the raise. The elections are sorted, and include all their seats.
func (r Raising) check(ctx context.Context, s service.Store, all []leadership.Election) (sound, corrupt []leadership.Election, refused error) {
	var furthest leadership.Revision
	known := all
	for i := 0; i < len(all); i++ {
		e := all[i]
		snap, err := s.Get(ctx, e)
		switch {
		case errors.Is(err, leadership.RecordCorrupt):
			corrupt = append(corrupt, e)
			continue
		case err != nil:
			return nil, corrupt, err
		}
		if _, err := r.rule(snap); err != nil && snap.Record.Revision >= furthest {
			furthest, refused = snap.Record.Revision, err
		}
		sound = append(sound, e)
		if snap.Record.Policy.Seats == 0 {
			continue
		}
		for n := range leadership.MaxSeats {
			seat := e.Seat(n + 1)
			if _, ok := slices.BinarySearch(known, seat); !ok {
				all, r.seats[seat] = append(all, seat), true
			}
		}
	}
	return sound, corrupt, refused
}

func (r Raising) raise(ctx context.Context, s service.Store, e leadership.Election, done *Raised) error {
	var present bool
	snap, err := s.Update(ctx, e, rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
		ch, err := r.rule(s)
		present = ch.Empty()
		return ch, err
	})
	switch {
	case err != nil:
		return err
	case present:
		done.Present++
	default:
		done.Raised++
	}
	done.LockedFor = max(done.LockedFor, snap.Lease().LockedFor)
	return nil
}
