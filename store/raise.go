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
	// Above and Lock are as in rule.RaiseCommand.
	Above leadership.Revision
	Lock  time.Duration
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
// Elections and seats that were created after the backup are not in the store. Raise writes a floor
// for them; see Floor.
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
	isFloor := func(e leadership.Election) bool { return e == leadership.FloorElection }
	elections, untrusted = slices.DeleteFunc(elections, isFloor), slices.DeleteFunc(untrusted, isFloor)
	elections, corrupt, err := r.check(ctx, s, append(elections, leadership.FloorElection))
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
	return rule.Raise(s, rule.RaiseCommand{Above: r.Above, Lock: r.Lock})
}

// Floor reads the floor of a store, above which elections begin that the store has never seen. A
// server must read it when it starts: without it such an election begins with token 1, which may
// have been granted after the backup. Only Raise changes it, while no server runs.
//
// Errors: those of Store.Get. The server must not start then.
func Floor(ctx context.Context, s service.Store) (rule.Floor, error) {
	snap, err := s.Get(ctx, leadership.FloorElection)
	if err != nil || !snap.Exists() {
		return rule.Floor{}, err
	}
	return rule.FloorOf(snap), nil
}

// check returns the elections that can be raised and those that cannot be trusted, or the error of
// an election that prevents the raise.
func (r Raising) check(ctx context.Context, s service.Store, all []leadership.Election) (sound, corrupt []leadership.Election, refused error) {
	var furthest leadership.Revision
	for _, e := range all {
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
	case e == leadership.FloorElection: // no election that anyone has led
	case present:
		done.Present++
	default:
		done.Raised++
	}
	done.LockedFor = max(done.LockedFor, snap.Lease().LockedFor)
	return nil
}
