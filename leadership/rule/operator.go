package rule

import (
	"cmp"
	"time"

	"regent/leadership"
)

func configure(s Snapshot, c leadership.Configure) (Change, error) {
	r := s.Record
	if r.Policy.LeaseDuration > 0 && !r.Deleted && r.Policy.Config.Explicit() == c.Config.Explicit() {
		return Change{}, nil
	}
	if err := cmp.Or(s.require(c.IfRevision), s.refuseSeats(c.Config)); err != nil {
		return Change{}, err
	}
	return s.reconfigure(c.Config), nil
}

// reconfigure gives the election another configuration.
func (s *Snapshot) reconfigure(config leadership.Config) Change {
	r := s.Record
	ch := s.change()
	if r.LeaderID != "" && !s.Live() {
		ch.expire(s.Guard) // its lock is that of the old configuration
	}
	event := leadership.EventConfigured
	if r.Deleted {
		event = leadership.EventRecreated // token, revision and a lock that still runs stay
	}
	ch.Record.Deleted, ch.Record.Policy.Config = false, config.Explicit()
	if !s.Exists() || r.Deleted {
		ch.Record.Standing.Created = s.Now.Unix()
	}
	ch.Record.Standing.closeBallot() // bids were written by the old rules
	if config.Term.Approval.Every != r.Policy.Term.Approval.Every {
		ch.Record.Standing.ApprovalLeft = 0
	}
	if config.Delegation != r.Policy.Delegation {
		ch.Record.Standing.Delegated = delegated{}
	}
	ch.countVacancy(s.Now)
	ch.announce(event, "")
	ch.relax(r.Policy.Ballot.Explicit())
	return ch
}

// countVacancy lets the vacancy of a vacant election begin now. A lock still ends when it would
// have.
func (c *Change) countVacancy(now time.Time) {
	r := &c.Record
	if r.LeaderID != "" {
		return
	}
	var left time.Duration
	if r.LockFor > 0 {
		left = max(r.EndedAt.Add(r.LockFor).Sub(now), 0)
	}
	r.EndedAt, r.LockFor = now, left
}

func remove(s Snapshot, c leadership.Delete) (Change, error) {
	r := s.Record
	if r.Deleted {
		return Change{}, nil
	}
	if !s.Exists() {
		return Change{}, s.RefuseUnseen()
	}
	if err := cmp.Or(s.ofSeat("goes when that has fewer seats, or is deleted"), s.require(c.IfRevision)); err != nil {
		return Change{}, err
	}
	if c.Force {
		return Bury(s), nil
	}
	if err := RefuseLed(s); err != nil {
		return Change{}, err
	}
	if r.Policy.Seats > 0 {
		return Change{}, &NeedsSeat{Whole: s}
	}
	return Bury(s), nil
}

// RefuseLed returns LeaseHeld if the election has a leader, so that it, or the election that it is
// a seat of, can be deleted only by force. It returns nil otherwise.
func RefuseLed(s Snapshot) error {
	if !s.Live() {
		return nil
	}
	return s.Refuse(leadership.LeaseHeld, "election %q is led by %q; wait for its release, or delete it by force", s.Record.Election, s.Record.LeaderID)
}

// Bury deletes any election that exists, even a seat, and ends the term of its leader. It leaves a
// tombstone.
func Bury(s Snapshot) Change {
	r := s.Record
	if r.Deleted || !s.Exists() {
		return Change{}
	}
	ch := s.change()
	ch.Record.Deleted = true
	ch.Record.Standing.closeBallot()
	switch {
	case s.Live():
		ch.vacate(leadership.EventDeleted, s.Now, r.LeaseEnd().Sub(s.Now)+r.Policy.LockDelay+s.Guard)
	case r.LeaderID != "":
		ch.expire(s.Guard)
		ch.announce(leadership.EventDeleted, "")
	default:
		ch.announce(leadership.EventDeleted, "")
	}
	return ch
}

func unlock(s Snapshot, c leadership.Unlock) (Change, error) {
	r := s.Record
	switch {
	case !s.Exists():
		return Change{}, s.RefuseUnseen()
	case r.Deleted:
		return Change{}, s.Refuse(leadership.ElectionDeleted, "election %q is deleted, so no candidate waits for it; bring it back by configuring it, and unlock it then", r.Election)
	}
	left, reason := s.blocked()
	if left == 0 {
		return Change{}, nil
	}
	until := s.waitEnd()
	if c.Acknowledge != acknowledgement(until) {
		return Change{}, s.refuseUnlock(reason, until)
	}
	ch := s.change()
	previous := r.LeaderID
	switch {
	case s.Live():
		ch.Record = r.Vacated(s.Now, 0)
		ch.Record.Standing.Ended = ended{r.Token, leadership.EndsUnlocked}
	case r.LeaderID != "":
		ch.expire(s.Guard)
		previous = ""
	}
	ch.Record.LockFor = 0
	ch.announce(leadership.EventUnlocked, previous)
	ch.explain(c.Reason, leadership.Detail{TwoMayBelieveUntil: until.UTC()})
	ch.Events[len(ch.Events)-1].Actor = c.Actor
	return ch, nil
}

// waitEnd returns the instant from which the next lease may be granted if nothing happens. Call it
// only while none may be granted yet. It depends on the record alone, so that it is the same
// whenever it is read.
func (s *Snapshot) waitEnd() time.Time {
	if r := s.Record; r.LeaderID == "" {
		return r.EndedAt.Add(r.LockFor)
	}
	return s.Record.LeaseEnd().Add(s.Record.Policy.LockDelay + s.Guard)
}

// acknowledgement returns the sentence that an operator must repeat to unlock a wait that ends at
// until.
func acknowledgement(until time.Time) string { return "two leaders may believe until " + stamp(until) }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// require returns RevisionMismatch unless the election meets an operator's condition.
func (s *Snapshot) require(want leadership.Revision) error {
	r := s.Record
	switch {
	case want == 0, want == leadership.NeverSeen && !s.Exists(), want == r.Revision:
		return nil
	case !s.Exists():
		return s.Refuse(leadership.RevisionMismatch, "election %q does not exist; leave the condition out to create it", r.Election)
	case want == leadership.NeverSeen && r.Deleted:
		return s.Refuse(leadership.RevisionMismatch, "election %q exists, deleted, at revision %d; to restore it, name that revision", r.Election, r.Revision)
	case want == leadership.NeverSeen:
		return s.Refuse(leadership.RevisionMismatch, "election %q exists already, at revision %d; read it and decide again", r.Election, r.Revision)
	}
	return s.Refuse(leadership.RevisionMismatch, "election %q is at revision %d, not %d; read it again and decide again", r.Election, r.Revision, want)
}
