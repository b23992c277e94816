package rule

import (
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// CarryCommand brings an election from an old store into a new one.
type CarryCommand struct {
	From Snapshot // as the old store had it, read or committed before the new store was read
}

const (
	// carryRoom is how far a carried election's revision lies above the old store's: further than
	// the events of the tombstone that the old store gets afterwards, so that a reader of both sees
	// no revision come back.
	carryRoom leadership.Revision = 3
	// carrySlack is how much longer than necessary a carried election is locked, so that it needs
	// no longer lock when it is carried again over a slower line.
	carrySlack = time.Second
)

// Carry decides in the new store. The election goes on from its token, with its policy and
// standing. It has no leader, because leases are not carried, and no lease is granted before the
// one that the old store knew would have ended by itself, its lock delay included: its leader
// believes in it until then. The revision goes on above the old store's, with a gap before it: the
// history stays in the old store.
//
// An election that the new store has already, at the same token or a later one, stays as it is but
// for a longer lock, if it needs one. So the same again does what once did, also after the old
// store got its tombstone. Only while the election is alive in the old store its policy there
// counts, until the election has a leader in the new store.
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
	if !has { // before any event: those of one change follow each other
		ch.Record.Revision = max(s.Record.Revision, from.Revision+carryRoom-1) // announce adds one
	}
	if s.Record.LeaderID != "" {
		ch.expire(s.Guard)
	}
	if !has && ch.Record.Token <= from.Token { // else it has a history of its own here, and only its revision is behind
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
		ch.lock(s.Now, 0) // it ended before; what is to be retired is vacant from now
	}
	ch.announce(s.transferred(ch.Record), "")
	return ch.trusted(s)
}

// has reports whether the election as another store has it is here already.
func (s *Snapshot) has(from Record) bool {
	r := s.Record
	if r.Token < from.Token || r.Revision <= from.Revision {
		return false
	}
	return r.Token > from.Token || from.Deleted || !r.Deleted && r.Policy == from.Policy &&
		r.Standing.bars() == from.Standing.bars() && r.Standing.Delegated == from.Standing.Delegated
}

// barred returns how long no other candidate may lead if the present leader stops without a word.
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

// lock lets no lease be granted for that long from now on, though the election is vacant. The next
// ballot opens after that.
func (c *Change) lock(now time.Time, d time.Duration) {
	c.Record.EndedAt, c.Record.LockFor = now, d
	c.Record.Standing.closeBallot()
}

// transferred returns the type of the event by which a vacant election becomes r.
func (s *Snapshot) transferred(r Record) leadership.EventType {
	switch {
	case r.Deleted:
		return leadership.EventDeleted
	case s.Record.Deleted:
		return leadership.EventRecreated
	}
	return leadership.EventConfigured
}

// trusted returns the change if what it writes would be trusted.
func (c Change) trusted(s Snapshot) (Change, error) {
	s.Record = c.Record
	if err := VerifyAlone(s); err != nil {
		return Change{}, err
	}
	return c, nil
}

// MinRaise and MaxRaise are the limits of RaiseCommand.Above. Half of all tokens are left.
const (
	MinRaise leadership.Revision = 2
	MaxRaise leadership.Revision = 1 << 52
)

// RaiseCommand brings an election past what was seen of it in a time that its store has forgotten.
type RaiseCommand struct {
	// Above is what its token and its revision become. It must be at least as high as every
	// revision that was ever seen of the election, and so as every token, which is never above its
	// revision; and higher than the revision in the store.
	Above leadership.Revision
	// Lock is how long no lease is granted, unless the record itself asks for longer.
	Lock time.Duration
}

// Raise decides in a store that was restored from a backup. Token and revision become Above in one
// step, and the leader at the time of the backup no longer leads. No lease is granted before all
// leases of the forgotten time have ended: after the lease that is known and its lock delay, after
// a lease as the election is configured from now, and after Lock, whichever is last. An election
// that was never seen is created.
//
// One that was raised so already stays as it is; its token is its revision, as no other election's
// is.
//
// Errors: InvalidArgument if Above is not higher than the revision in the store: either it is too
// low, or the election has gone on since it was raised; or if it was raised so already, with a
// shorter lock.
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
		ch.Record.Standing = s.ended().Record.Standing // with what bars the next grant
		ch.vacate(leadership.EventExpired, s.Now, lock)
		return ch.trusted(s)
	}
	ch.Record.Deleted = r.Deleted || r.Election == leadership.FloorElection // which no list shows
	ch.lock(s.Now, lock)
	ch.Record.Standing.Ended = ended{Token: ch.Record.Token} // how the last forgotten term ended is not known
	ch.announce(s.transferred(ch.Record), "")
	return ch.trusted(s)
}
