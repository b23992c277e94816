package leadership

import (
	"fmt"
	"time"
)

// Configure sets an election's configuration. It creates an election that was never seen, and
// brings back one that is deleted. A lease that is held keeps its duration; the next one gets the
// new default. A limit of the term that is no longer configured is lifted at once; a new one counts
// from the next grant. Bids that were written count no more: the next one opens a ballot by the new
// rules. If the rules of ballots change, a challenge is taken back; a better candidate that still
// waits may challenge again. A lock that is running does not end earlier or later. With a
// RetireAfter the vacancy counts from now, so that an election that was brought back is not retired
// at once.
//
// Idempotent: writes nothing if the configuration is already set, and then ignores the condition
// (RFC 9110 §13.1.1 lets a server answer so).
//
// Errors: RevisionMismatch.
type Configure struct {
	Election Election
	Config   Config
	// IfRevision is the revision that the election must be at; NeverSeen: it must not exist; 0: no
	// condition. Without a condition a copy that comes late undoes what came after the first.
	IfRevision Revision
}

// In is the command for an election.
func (c Configure) In(e Election) Configure {
	c.Election = e
	return c
}

// Name implements Command.
func (Configure) Name() string { return "configure" }

// Target implements Command.
func (c Configure) Target() Target { return Target{Election: c.Election} }

// Validate implements Command.
func (c Configure) Validate() error {
	if err := c.Election.Validate(); err != nil {
		return invalid("election", err)
	}
	if field, err := c.Config.validate(); err != nil {
		return invalid(field, err)
	}
	if parent := c.Config.Delegation.Parent; parent != "" && !c.Election.childOf(parent) {
		return invalid("policy.delegation.parent", fmt.Errorf("the parent of election %q is what stands before the last dot of its name, and not %q", c.Election, parent))
	}
	if c.IfRevision == NeverSeen {
		return nil
	}
	return validateCondition(c.IfRevision)
}

// Apply implements Command.
func (c Configure) Apply(s Snapshot) (Change, error) {
	r := s.Record
	if r.Policy.LeaseDuration > 0 && !r.Deleted && r.Policy.Config.Explicit() == c.Config.Explicit() {
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
	ch.Record.Deleted, ch.Record.Policy.Config = false, c.Config.Explicit()
	if !s.exists() || r.Deleted {
		ch.Record.Standing.Created = s.Now.Unix()
	}
	ch.Record.Standing.closeBallot() // what a bid counts for is another now
	if c.Config.Term.Approval.Every != r.Policy.Term.Approval.Every {
		ch.Record.Standing.ApprovalLeft = 0
	}
	if c.Config.Delegation != r.Policy.Delegation {
		ch.Record.Standing.Delegated = delegated{}
	}
	ch.countVacancy(s.Now)
	ch.announce(event, "")
	ch.relax(r.Policy.Ballot.explicit())
	return ch, nil
}

// countVacancy lets a vacancy begin now. A lock ends when it would have.
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

// Delete deletes an election: it leaves a tombstone. It is refused while the election has a leader,
// unless it is forced: then the lease ends in the store, its leader learns of it at its next
// renewal, and no lease is granted until the deleted one would have ended by itself (and its lock
// delay), not even after the election was brought back. A deleted election stays as it is.
//
// Errors: NotFound, RevisionMismatch, LeaseHeld.
type Delete struct {
	Election   Election
	IfRevision Revision // as in Configure, without NeverSeen
	Force      bool     // even while it is held
}

// Name implements Command.
func (Delete) Name() string { return "delete" }

// Target implements Command.
func (c Delete) Target() Target { return Target{Election: c.Election} }

// Validate implements Command.
func (c Delete) Validate() error { return validateCondition(c.IfRevision) }

// Apply implements Command.
func (c Delete) Apply(s Snapshot) (Change, error) {
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
	ch.Record.Standing.closeBallot()
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

// Unlock lets the next lease be granted at once: it ends the lease, the wait for a lease that was
// deleted by force, and the lock delay. It is for a lease that is too long to wait for and whose
// leader cannot release it.
//
// It is the one command after which two candidates may believe that they lead: the leader learns of
// it at its next renewal and, if it cannot renew, never. Fencing tokens still tell them apart,
// because the next grant has a higher one. So Unlock is refused unless Acknowledge is the
// sentence with which it was refused: "two leaders may believe until" and the instant at which the
// wait would have ended by itself. That instant is another for another lease, and after a renewal:
// then the sentence has to be read and repeated anew. To make it stand still, take the leader's
// rights away, or delete the election by force and bring it back.
//
// It writes nothing if no lease or lock is in the way, so it may be repeated.
//
// Errors: NotFound; ElectionDeleted; LeaseHeld, with the sentence.
type Unlock struct {
	Election Election
	Reason   string // why, for people: one line of 1 to MaxReasonBytes bytes
	// Acknowledge repeats the sentence of the refusal word for word.
	Acknowledge string
	Actor       string // the principal that unlocks
}

// Name implements Command.
func (Unlock) Name() string { return "unlock" }

// Target implements Command.
func (c Unlock) Target() Target { return Target{Election: c.Election, Reason: c.Reason} }

// Validate implements Command.
func (c Unlock) Validate() error { return fields(validateWord(c.Actor, c.Reason)) }

// Apply implements Command.
func (c Unlock) Apply(s Snapshot) (Change, error) {
	r := s.Record
	switch {
	case !s.exists():
		return Change{}, s.refuseUnseen()
	case r.Deleted:
		return Change{}, s.refuse(ElectionDeleted, "election %q is deleted, so no candidate waits for it; bring it back by configuring it, and unlock it then", r.Election)
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
		ch.Record = r.vacated(s.Now, 0)
		ch.Record.Standing.Ended = ended{r.Token, EndsUnlocked}
	case r.LeaderID != "":
		ch.expire(s.Guard)
		previous = ""
	}
	ch.Record.LockFor = 0
	ch.announce(EventUnlocked, previous)
	ch.explain(c.Reason, Detail{TwoMayBelieveUntil: until.UTC()})
	ch.Events[len(ch.Events)-1].Actor = c.Actor
	return ch, nil
}

// waitEnd is the instant from which the next lease may be granted if nothing happens, where one may
// not be granted yet. It depends on the record alone, so that it is the same whenever it is read.
func (s Snapshot) waitEnd() time.Time {
	if r := s.Record; r.LeaderID == "" {
		return r.EndedAt.Add(r.LockFor)
	}
	return s.Record.LeaseEnd().Add(s.Record.Policy.LockDelay + s.Guard)
}

// acknowledgement is what an operator has to repeat to unlock a wait that ends at the instant.
func acknowledgement(until time.Time) string { return "two leaders may believe until " + stamp(until) }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// require checks an operator's condition.
func (s Snapshot) require(want Revision) error {
	r := s.Record
	switch {
	case want == 0, want == NeverSeen && !s.exists(), want == r.Revision:
		return nil
	case !s.exists():
		return s.refuse(RevisionMismatch, "election %q does not exist; leave the condition out to create it", r.Election)
	case want == NeverSeen && r.Deleted:
		return s.refuse(RevisionMismatch, "election %q exists, deleted, at revision %d; to restore it, name that revision", r.Election, r.Revision)
	case want == NeverSeen:
		return s.refuse(RevisionMismatch, "election %q exists already, at revision %d; read it and decide again", r.Election, r.Revision)
	}
	return s.refuse(RevisionMismatch, "election %q is at revision %d, not %d; read it again and decide again", r.Election, r.Revision, want)
}
