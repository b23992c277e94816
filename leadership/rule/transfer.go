package rule

import (
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// CarryCommand brings an election from an old store into a new one.
type CarryCommand struct {
	From Snapshot // the election in the old store, read or committed before the new store was read
}

const (
	// carryRoom is how far a carried election's revision lies above the old store's: more than the
	// events of the tombstone that the old store gets afterwards, so that a reader of both stores
	// sees no revision twice.
	carryRoom leadership.Revision = 3
	// carrySlack is how much longer than necessary a carried election is locked, so that it needs
	// no longer lock if it is carried again over a slower connection.
	carrySlack = time.Second
)

// Carry decides in the new store. The election continues from its token, with its policy and
// standing. It has no leader, because leases are not carried, and no lease is granted before the
// lease in the old store and its lock delay would have ended: its leader believes in it until then.
// The revision continues above the old store's, with a gap before it: the history stays in the old
// store.
//
// An election that the new store already has, at the same token or a later one, stays as it is
// except for a longer lock, if it needs one. So Carry may be repeated, even after the old store got
// its tombstone. Until the election has a leader in the new store, its policy in the old store
// counts, as long as it is not deleted there.
//
// Errors: LeaseHeld if the election has a leader in the new store under a token that is not above
// the old store's: the new store is in use; RecordCorrupt if what was read cannot be carried.
func Carry(s Snapshot, c CarryCommand) (Change, error) {
	from, locked := c.From.ended().Record, c.From.barred()
	if locked > 0 {
		locked += s.Guard
	}
	switch {
	case !c.From.Exists(), s.Record.Token > from.Token && s.Record.Revision > from.Revision:
		return Change{}, nil
	case s.Record.LeaderID != "" && !s.Over():
		return Change{}, s.Refuse(leadership.LeaseHeld, "election %q is led by %q in the store that it is to be moved to, with fencing token %d, "+
			"and its token in the other is %d: that store is in use; stop its servers, or move to another",
			from.Election, s.Record.LeaderID, s.Record.Token, from.Token)
	case s.has(from) && locked <= s.barred():
		return Change{}, nil
	}
	ch, has := s.change(), s.has(from)
	if !has { // before any event: the events of one change have consecutive revisions
		ch.Record.Revision = max(s.Record.Revision, from.Revision+carryRoom-1) // announce adds one
	}
	if s.Record.LeaderID != "" {
		ch.expire(s.Guard)
	}
	if !has && ch.Record.Token <= from.Token { // otherwise it has a history of its own here, and only its revision is behind
		ch.Record.Token, ch.Record.Policy, ch.Record.Deleted = from.Token, from.Policy, from.Deleted
		ch.Record.Standing, ch.Record.Needs = from.Vacated(c.From.Now, 0).Standing.moved(s.Now.Sub(c.From.Now)), from.Needs
		ch.Record.Standing.Created = from.created()
		if from.LeaderID != "" {
			ch.Record.Standing.Ended = ended{from.Token, leadership.EndsExpired} // its leader cannot renew here
		}
	}
	if locked > s.barred() {
		ch.lock(s.Now, locked+carrySlack)
	} else if r := ch.Record; r.EndedAt.IsZero() && (r.Token > 0 || r.Policy.RetireAfter > 0) {
		ch.lock(s.Now, 0) // the lease ended before; for RetireAfter the vacancy begins now
	}
	ch.announce(s.transferred(ch.Record), "")
	return ch.trusted(s)
}

// has reports whether s already has the election as it is in the other store.
func (s *Snapshot) has(from Record) bool {
	r := s.Record
	if r.Token < from.Token || r.Revision <= from.Revision {
		return false
	}
	return r.Token > from.Token || from.Deleted || !r.Deleted && r.Policy == from.Policy &&
		r.Standing.bars() == from.Standing.bars() && r.Standing.Delegated == from.Standing.Delegated
}

// barred returns how long no other candidate may lead if the present leader stops without a
// release.
func (s *Snapshot) barred() time.Duration {
	r := s.Record
	switch {
	case r.LeaderID != "":
		return max(r.LeaseEnd().Add(r.Policy.LockDelay+s.Guard).Sub(s.Now), 0)
	case r.LockFor > 0:
		return max(r.EndedAt.Add(r.LockFor).Sub(s.Now), 0)
	}
	return 0
}

// lock locks the vacant election for d from now on: no lease is granted, and the next ballot opens
// after that.
func (c *Change) lock(now time.Time, d time.Duration) {
	c.Record.EndedAt, c.Record.LockFor = now, d
	c.Record.Standing.closeBallot()
}

// transferred returns the type of the event that turns the vacant election into r.
func (s *Snapshot) transferred(r Record) leadership.EventType {
	switch {
	case r.Deleted:
		return leadership.EventDeleted
	case s.Record.Deleted:
		return leadership.EventRecreated
	}
	return leadership.EventConfigured
}

// trusted returns the change if the record that it writes passes Verify.
func (c Change) trusted(s Snapshot) (Change, error) {
	s.Record = c.Record
	if err := VerifyAlone(s); err != nil {
		return Change{}, err
	}
	return c, nil
}

// MinRaise and MaxRaise are the limits of RaiseCommand.Above. MaxRaise leaves half of all tokens.
const (
	MinRaise leadership.Revision = 2
	MaxRaise leadership.Revision = 1 << 52
)

// RaiseCommand raises an election above every token and revision that was seen before its store was
// restored from a backup.
type RaiseCommand struct {
	// Above becomes both the token and the revision. It must be higher than the revision in the
	// store, and at least as high as every revision that was ever seen of the election. (A token is
	// never above its revision.)
	Above leadership.Revision
	// Lock is how long no lease is granted, unless the record requires longer.
	Lock time.Duration
}

// Raise decides in a store that was restored from a backup. Token and revision become Above in one
// step, and the leader at the time of the backup no longer leads. No lease is granted before all
// leases of the forgotten time have ended: after the lease that is known and its lock delay, after
// a lease as the election is configured from now, and after Lock, whichever is last. An election
// that was never seen is created.
//
// An election that was already raised to Above stays as it is. It is recognized by a token that
// equals its revision, which no other election has.
//
// Errors: InvalidArgument if Above is not higher than the revision in the store, because it is too
// low or the election has changed since it was raised; or if the election was already raised to
// Above with a shorter lock.
func Raise(s Snapshot, c RaiseCommand) (Change, error) {
	r := s.Record
	switch {
	case c.Above < MinRaise || c.Above > MaxRaise:
		return Change{}, leadership.Invalid("above", fmt.Errorf("tokens are raised to %d at least, and to %d at most", MinRaise, MaxRaise))
	case c.Lock < 0 || c.Lock > leadership.MaxLeaseDuration+leadership.MaxLockDelay:
		return Change{}, leadership.Invalid("lock", fmt.Errorf("a lock is from 0s to %s", form.Spoken(leadership.MaxLeaseDuration+leadership.MaxLockDelay)))
	case r.Revision == c.Above && leadership.Revision(r.Token) == c.Above && c.Lock+s.Guard > r.LockFor:
		return Change{}, leadership.Invalid("lock", fmt.Errorf("election %q was raised to %d already, with a lock of %s from then; to lock it for longer, raise it above a higher number",
			r.Election, c.Above, form.Spoken(r.LockFor.Round(time.Second))))
	case r.Revision == c.Above && leadership.Revision(r.Token) == c.Above:
		return Change{}, nil
	case r.Revision >= c.Above:
		return Change{}, leadership.Invalid("above", fmt.Errorf("election %q is at revision %d and fencing token %d already, and so may have been seen beyond %d; "+
			"raise all of them above a higher number", r.Election, r.Revision, r.Token, c.Above))
	}
	ch := s.change()
	ch.Record.Revision, ch.Record.Token = c.Above-1, leadership.Token(c.Above) // the event adds one
	lock := max(s.barred(), c.Lock+s.Guard, max(r.LeaseDuration, r.Policy.EffectiveLease())+r.Policy.LockDelay+s.Guard)
	if r.LeaderID != "" {
		ch.Record.Standing = s.ended().Record.Standing // including what bars the next grant
		ch.vacate(leadership.EventExpired, s.Now, lock)
		return ch.trusted(s)
	}
	ch.Record.Deleted = r.Deleted || r.Election == leadership.FloorElection // which no list shows
	ch.lock(s.Now, lock)
	ch.Record.Standing.Ended = ended{Token: ch.Record.Token} // how the last forgotten term ended is not known
	ch.announce(s.transferred(ch.Record), "")
	return ch.trusted(s)
}
