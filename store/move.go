package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// Passage is the effect of a move on one election.
type Passage struct {
	Election leadership.Election
	// Token, Revision and Deleted are those in the new store after the move.
	Token    leadership.Token
	Revision leadership.Revision
	Deleted  bool
	// LockedFor is how long the new store grants no lease, counted from the move.
	LockedFor time.Duration
	// Present says that the new store already had the election in this state.
	Present bool
}

// PlanMove returns what Move would do, and writes nothing. Errors: those of Move.
func PlanMove(ctx context.Context, from, to Store) ([]Passage, error) {
	names, err := movable(ctx, from)
	if err != nil {
		return nil, err
	}
	var plan []Passage
	var refused refusals
	for _, e := range names {
		p, err := planned(ctx, from, to, e)
		if refused.take(e, err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		plan = append(plan, p)
	}
	if err := planLogs(ctx, from, to, &refused); err != nil {
		return nil, err
	}
	return plan, refused.err()
}

// Move moves all elections of one store to another, including Regent's own, one after the other:
// with their tokens, revisions, policies and standings, and without their leases. No token and no
// revision goes back. The new store grants no lease before the one that the old store knows would
// have ended. In the old store each election becomes a tombstone, so that a server that still uses
// that store never grants it again. Then all logs are copied, with their marks, and compared; in
// the old store no leader can write to them any more.
//
// No server may use either store meanwhile. Move notices if the old one is used all the same, and
// then begins with the election anew. Only a lease that is renewed there between two attempts at a
// move can end later than the new store was told, until Move has ended.
//
// If Move was interrupted, make the same call again: it continues. To bring the elections back,
// move them the other way.
//
// where is the spec of the new store. Before anything is moved, the old store is marked with it
// (see RefuseMoved); once everything is moved, the new store's own mark, if it has one, is removed.
//
// Move first reads everything. If a record on either side cannot be trusted or needs a newer
// program, or if an election has a leader in the new store, it returns an error with the code
// RecordCorrupt, RecordTooNew or LeaseHeld that names them, and writes nothing. Other errors are
// those of the stores; some elections may then have been moved.
func Move(ctx context.Context, from, to Store, where string) ([]Passage, error) {
	plan, err := PlanMove(ctx, from, to)
	if err != nil {
		return nil, err
	}
	if err := mark(ctx, from, where); err != nil {
		return nil, err
	}
	for i, p := range plan {
		if plan[i], err = move(ctx, from, to, p.Election); err != nil {
			return plan[:i], fmt.Errorf("move election %q: %w", p.Election, err)
		}
		plan[i].Present = p.Present
	}
	if err := moveLogs(ctx, from, to); err != nil {
		return plan, err
	}
	_, err = to.Update(ctx, leadership.MovedElection, rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) { return rule.Bury(s), nil })
	return plan, err
}

// mark records in a store where its elections are moved to.
func mark(ctx context.Context, s service.Store, where string) error {
	c := leadership.Config{Description: where}
	if _, err := c.Check(); err != nil { // a path may be too long
		c.Description = "another store"
	}
	_, err := s.Update(ctx, leadership.MovedElection, rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
		return rule.Apply(s, leadership.Configure{Config: c})
	})
	return err
}

// RefuseMoved returns an InvalidArgument error if the elections of the store were moved to another
// one, or a move was interrupted: the store must not be served. Tombstones alone would not prevent
// a server from granting elections that an operator brings back, or that were never seen there.
func RefuseMoved(ctx context.Context, s service.Store) error {
	snap, err := s.Get(ctx, leadership.MovedElection)
	if err != nil || !snap.Exists() || snap.Record.Deleted {
		return err
	}
	return refuse("the elections of this store were moved to %s, or the move was interrupted: use that store; "+
		"if 'regent admin migrate --from' has not ended with exit code 0, run it again; to use this store again, move them back with it", snap.Record.Policy.Description)
}

// movable lists a store of which every record can be trusted.
func movable(ctx context.Context, s service.Store) ([]leadership.Election, error) {
	names, untrusted, err := names(ctx, s, "")
	if err == nil && len(untrusted) > 0 {
		err = untrustworthy(untrusted)
	}
	return names, err
}

// planned returns the passage of an election as both stores have it now.
func planned(ctx context.Context, from, to service.Store, e leadership.Election) (Passage, error) {
	old, err := from.Get(ctx, e)
	if err != nil {
		return Passage{}, err
	}
	snap, err := to.Get(ctx, e)
	if err != nil {
		return Passage{}, err
	}
	ch, err := rule.Carry(snap, rule.CarryCommand{From: old})
	if err != nil {
		return Passage{}, err
	}
	if !ch.Empty() {
		snap.Record = ch.Record
	}
	return passage(snap, ch.Empty()), nil
}

func passage(s rule.Snapshot, present bool) Passage {
	l := s.Lease()
	return Passage{Election: l.Election, Token: l.Token, Revision: l.Revision, Deleted: l.Deleted, LockedFor: l.LockedFor, Present: present}
}

// attempts is how often Move tries an election that changes meanwhile.
const attempts = 5

// errChanged says that an election has changed since it was carried.
var errChanged = errors.New("it changes while it is moved: a server still uses the old store; stop it, and run the same command again")

// move carries an election, then replaces it by a tombstone in the old store, and then carries it
// again with the lease as the tombstone has it.
func move(ctx context.Context, from, to service.Store, e leadership.Election) (Passage, error) {
	for range attempts {
		old, err := from.Get(ctx, e)
		if err != nil {
			return Passage{}, err
		}
		if _, err = carry(ctx, to, old); err != nil {
			return Passage{}, err
		}
		old, err = bury(ctx, from, old)
		if errors.Is(err, errChanged) {
			continue
		}
		if err != nil {
			return Passage{}, err
		}
		moved, err := carry(ctx, to, old)
		return passage(moved, false), err
	}
	return Passage{}, errChanged
}

func carry(ctx context.Context, to service.Store, old rule.Snapshot) (rule.Snapshot, error) {
	return to.Update(ctx, old.Record.Election, rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
		return rule.Carry(s, rule.CarryCommand{From: old})
	})
}

// bury leaves a tombstone, if the election has not changed. A renewal is no change; the tombstone
// has the lease as it was last renewed.
func bury(ctx context.Context, from service.Store, carried rule.Snapshot) (rule.Snapshot, error) {
	return from.Update(ctx, carried.Record.Election, rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
		if s.Record.Revision != carried.Record.Revision {
			return rule.Change{}, errChanged
		}
		return rule.Bury(s), nil
	})
}

// names reads the names of all elections with the prefix, except for MovedElection, and of those
// that cannot be trusted.
func names(ctx context.Context, s service.Store, prefix string) (found, untrusted []leadership.Election, err error) {
	if untrusted, err = orphans(ctx, s, prefix); err != nil {
		return nil, nil, err
	}
	var after leadership.Election
	for {
		listing, err := s.List(ctx, prefix, after, leadership.MaxPageSize)
		if err != nil {
			return nil, nil, err
		}
		for _, snap := range listing.Snapshots {
			if snap.Record.Election != leadership.MovedElection { // that concerns only this store
				found = append(found, snap.Record.Election)
			}
		}
		found = append(found, listing.TooNew...) // reading one later returns an error that names it
		untrusted = append(untrusted, listing.Untrusted...)
		if after = listing.Next; after == "" {
			return found, untrusted, nil
		}
	}
}

// orphans returns the elections with the prefix that have a history but no record, if the store's
// list does not find them.
func orphans(ctx context.Context, s service.Store, prefix string) ([]leadership.Election, error) {
	finder, ok := s.(interface {
		Orphans(context.Context) ([]leadership.Election, error)
	})
	if !ok {
		return nil, nil
	}
	found, err := finder.Orphans(ctx)
	return slices.DeleteFunc(found, func(e leadership.Election) bool { return !strings.HasPrefix(string(e), prefix) }), err
}

// refusals collects the elections that prevent a move.
type refusals struct {
	untrusted []leadership.Election
	held      error // the first
	more      int   // after the first
}

// take reports whether err is a refusal, and keeps it.
func (r *refusals) take(e leadership.Election, err error) bool {
	switch {
	case errors.Is(err, leadership.RecordCorrupt):
		r.untrusted = append(r.untrusted, e)
	case errors.Is(err, leadership.LeaseHeld) && r.held == nil:
		r.held = err
	case errors.Is(err, leadership.LeaseHeld):
		r.more++
	default:
		return false
	}
	return true
}

func (r *refusals) err() error {
	switch {
	case len(r.untrusted) > 0:
		return untrustworthy(r.untrusted)
	case r.more > 0:
		return fmt.Errorf("%w; so are %d more", r.held, r.more)
	}
	return r.held
}

// untrustworthy returns the error that names the records that prevent a move.
func untrustworthy(elections []leadership.Election) error {
	return &leadership.Error{Code: leadership.RecordCorrupt, Detail: "nothing was moved, for records of one store or the other cannot be trusted, " +
		"and fencing tokens would begin anew: " + Quoted(elections) + "; mend each, with a fencing token above every one ever seen, " +
		"or remove it with its history if it is no election, and run the same command again"}
}

// Quoted returns a list of names for people; it leaves some out if there are many.
func Quoted[T ~string](names []T) string {
	const most = 20
	var parts []string
	for i, e := range names {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(names)-most))
			break
		}
		parts = append(parts, fmt.Sprintf("%q", string(e)))
	}
	return strings.Join(parts, ", ")
}

// CheckMove returns an InvalidArgument error if elections cannot be moved between the stores of two
// specs.
func CheckMove(from, to string) error {
	a, err := parse(from)
	if err != nil {
		return err
	}
	b, err := parse(to)
	if err != nil {
		return err
	}
	switch {
	case a.kind == inMemory || b.kind == inMemory:
		return refuse("memory: is gone with its process: nothing can be moved out of it or into it")
	case a.same(b):
		return refuse("%s and %s are one store: name another to move to", from, to)
	}
	return nil
}

// same reports whether two specs name the same store, however they are spelt.
func (t target) same(other target) bool {
	const unnamed = "(default)" // of Firestore
	switch {
	case t.kind != other.kind:
		return false
	case t.kind == inFile:
		return samePath(t.path, other.path)
	case t.kind == inFirestore && t.database == "":
		t.database = unnamed
	}
	if other.kind == inFirestore && other.database == "" {
		other.database = unnamed
	}
	return t == other
}

func samePath(a, b string) bool {
	one, err := os.Stat(a)
	if err == nil {
		two, err := os.Stat(b)
		return err == nil && os.SameFile(one, two)
	}
	return filepath.Clean(a) == filepath.Clean(b)
}

// OpenExisting is Open for an existing store: it creates no folder, and refuses memory. If there
// is no such folder, the error is fs.ErrNotExist by errors.Is.
func OpenExisting(ctx context.Context, spec string, c Config) (Store, error) {
	t, err := parse(spec)
	if err != nil {
		return nil, err
	}
	switch t.kind {
	case inMemory:
		return nil, refuse("memory: is gone with its process, so there is nothing in it; name a store that lasts")
	case inFile:
		if _, err := os.Stat(t.path); err != nil {
			return nil, fmt.Errorf("there is no store at file:%s: %w", t.path, err)
		}
	}
	return Open(ctx, spec, c)
}
