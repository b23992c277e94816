package leadership

import "time"

// ConfigureCommand sets an election's configuration. It creates an election that was never seen,
// and brings back one that is deleted.
type ConfigureCommand struct {
	Config     Config
	IfRevision Revision // 0: no condition; AnyRevision: it must exist; else it must be this one
}

// Configure sets the configuration. A lease that is held keeps its duration; the next one gets the
// new default. A lock that is running does not end earlier or later. With a RetireAfter the vacancy
// counts from now, so that an election that was brought back is not retired at once. Idempotent:
// writes nothing if the configuration is already set, and then ignores the condition (RFC 9110
// §13.1.1 lets a server answer so).
//
// Errors: RevisionMismatch.
func Configure(s Snapshot, c ConfigureCommand) (Change, error) {
	r := s.Record
	if s.exists() && !r.Deleted && r.Policy.Config.explicit() == c.Config.explicit() {
		return Change{}, nil
	}
	if err := s.require(c.IfRevision); err != nil {
		return Change{}, err
	}
	ch := s.change()
	if r.LeaderID != "" && !s.Live() {
		ch.expire(s.Guard) // its lock is that of the old configuration
	}
	event := EventConfigured
	if r.Deleted {
		event = EventRecreated // token, revision and a lock that still runs stay
	}
	ch.Record.Deleted, ch.Record.Policy.Config = false, c.Config.explicit()
	ch.countVacancy(s.Now)
	ch.announce(event, "")
	return ch, nil
}

// countVacancy lets a vacancy that RetireAfter limits begin now. A lock ends when it would have.
func (c *Change) countVacancy(now time.Time) {
	r := &c.Record
	if r.LeaderID != "" || r.Policy.RetireAfter == 0 {
		return
	}
	var left time.Duration
	if r.LockFor > 0 {
		left = max(r.EndedAt.Add(r.LockFor).Sub(now), 0)
	}
	r.EndedAt, r.LockFor = now, left
}

// DeleteCommand deletes an election.
type DeleteCommand struct {
	IfRevision Revision // as in ConfigureCommand
	Force      bool     // even while it is held
}

// Delete leaves a tombstone. It is refused while the election has a leader, unless it is forced:
// then the lease ends in the store, its leader learns of it at its next renewal, and no lease is
// granted until the deleted one would have ended by itself (and its lock delay), not even after the
// election was brought back. A deleted election stays as it is.
//
// Errors: NotFound, RevisionMismatch, LeaseHeld.
func Delete(s Snapshot, c DeleteCommand) (Change, error) {
	r := s.Record
	if r.Deleted {
		return Change{}, nil
	}
	if !s.exists() {
		return Change{}, s.refuseUnseen()
	}
	if err := s.require(c.IfRevision); err != nil {
		return Change{}, err
	}
	if s.Live() && !c.Force {
		return Change{}, s.refuse(LeaseHeld, "election %q is led by %q; wait for its release, or delete it by force", r.Election, r.LeaderID)
	}
	ch := s.change()
	ch.Record.Deleted = true
	switch {
	case s.Live():
		ch.vacate(EventDeleted, s.Now, r.LeaseEnd().Sub(s.Now)+r.Policy.LockDelay+s.Guard)
	case r.LeaderID != "":
		ch.expire(s.Guard)
		ch.announce(EventDeleted, "")
	default:
		ch.announce(EventDeleted, "")
	}
	return ch, nil
}

// require checks an operator's condition.
func (s Snapshot) require(want Revision) error {
	r := s.Record
	switch {
	case want == 0, want == AnyRevision && s.exists(), want == r.Revision:
		return nil
	case !s.exists():
		return s.refuse(RevisionMismatch, "election %q does not exist; leave the condition out to create it", r.Election)
	}
	return s.refuse(RevisionMismatch, "election %q is at revision %d, not %d; read it again and decide again", r.Election, r.Revision, want)
}
