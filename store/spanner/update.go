package spanner

import (
	"context"
	"errors"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/store/internal/history"
)

// attempt is one run of an Update's transaction.
type attempt struct {
	read    rule.Snapshot
	change  rule.Change
	carried rule.Carried
	answer  error // returned to the caller unchanged: decide's error, or that the record is corrupt
}

// Update first decides on one strong query without a lock. If there is nothing to write, neither at
// the query's time nor at CURRENT_TIMESTAMP(), that is all: a refused attempt neither waits for the
// leader's renewals nor delays them. Otherwise a read-write transaction decides again, by one query
// and one Commit; between the two the row is locked, and only the decision is made. If a change is
// expected, and for a renewal with a report or a parent's lease, it starts with the transaction; if
// nothing is to be written, the Commit is a Rollback.
func (s *Store) Update(ctx context.Context, e leadership.Election, x rule.Expect, decide func(rule.Snapshot) (rule.Change, error)) (rule.Snapshot, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return rule.Snapshot{}, err
	}
	defer done()
	var a attempt
	if !changeExpected(x) {
		f, clock, err := s.look(ctx, "look", e)
		if err != nil {
			return rule.Snapshot{}, err
		}
		later := f
		later.Now = clock // else a time that stands still would refuse for ever
		if a.decide(later, e, s.codec, decide); !a.writes() {
			a = attempt{}
			if a.decide(f, e, s.codec, decide); !a.writes() {
				return a.settled()
			}
		}
	}
	at, err := s.transact(ctx, "update", quoted(e), 0, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		a = attempt{} // the client may have run this before
		f, err := read(ctx, tx, "update", e)
		if err != nil {
			return err
		}
		a.decide(f, e, s.codec, decide)
		return a.write(ctx, tx, s.history)
	})
	switch {
	case errors.Is(err, errRefused), errors.Is(err, errNothingToWrite):
		return a.settled()
	case err != nil:
		return rule.Snapshot{}, occupied(e, err)
	}
	return a.committed(at), nil
}

// changeExpected reports whether the Update will most likely write. A plain renewal is one that
// Renew did not find, and will most likely be refused.
func changeExpected(x rule.Expect) bool {
	return x.Change || x.Held != nil && (x.Held.Report != "" || x.Held.Parent.Token > 0)
}

func (a *attempt) decide(
	f found, e leadership.Election, codec rule.Codec, decide func(rule.Snapshot) (rule.Change, error),
) {
	if a.read, a.answer = f.snapshot(e, codec); a.answer == nil {
		a.change, a.carried, a.answer = codec.Decide(a.read, rule.Carried{}, decide)
	}
}

// writes reports whether there is a change to write.
func (a *attempt) writes() bool { return a.answer == nil && !a.change.Empty() }

// settled returns the caller's result if there is nothing to write.
func (a *attempt) settled() (rule.Snapshot, error) {
	if a.answer != nil {
		return rule.Snapshot{}, a.answer
	}
	return a.read, nil
}

// write adds the decided change to the Commit. The error is errRefused or errNothingToWrite if
// there is no change, or the client's own. If ctx leaves no time for a Commit, it is ctx's error,
// so that the client rolls back: a Commit that is not sent would leave the row locked.
func (a *attempt) write(ctx context.Context, tx *spanner.ReadWriteTransaction, keep history.Span) error {
	if a.answer != nil {
		return errRefused
	}
	if a.change.Empty() {
		return errNothingToWrite
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return tx.BufferWrite(a.mutations(keep.Due(a.read.Now)))
}

// mutations returns the writes of the change and its events. Events that are then no longer the
// newest get the time from which they may be deleted.
func (a *attempt) mutations(due time.Time) []*spanner.Mutation {
	put := spanner.UpdateMap
	before := a.read.Record
	if before.Revision == 0 {
		put = spanner.InsertMap
	}
	mutations := []*spanner.Mutation{put("Leadership", columns(a.change, a.carried))}
	for i, ev := range a.change.Events {
		row := eventColumns(ev)
		if i < len(a.change.Events)-1 {
			row["delete_after"] = due
		}
		mutations = append(mutations, spanner.InsertMap("LeadershipEvents", row))
	}
	if len(a.change.Events) > 0 && before.Revision > 0 {
		mutations = append(mutations, spanner.UpdateMap("LeadershipEvents", map[string]any{
			"cluster_id": string(before.Election), "revision": int64(before.Revision), "delete_after": due,
		}))
	}
	return mutations
}

// committed returns the election after the change.
func (a *attempt) committed(at time.Time) rule.Snapshot {
	return rule.Snapshot{Record: a.change.Committed(at), Now: at, Guard: Guard}
}

// occupied returns the error for the one refusal of a Commit that means a corrupt record: an event
// of the next revision exists already.
func occupied(e leadership.Election, err error) error {
	if spanner.ErrCode(err) != codes.AlreadyExists || errors.Is(err, leadership.OutcomeUnknown) {
		return err
	}
	return rule.Corrupt(e, errors.New("its history goes on beyond its revision"))
}
