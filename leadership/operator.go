package leadership

import (
	"cmp"
	"fmt"
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

func (Configure) Name() string { return "configure" }

func (c Configure) Target() Target { return Target{Election: c.Election} }

func (c Configure) Validate() error {
	if err := cmp.Or(fields("election", c.Election.Validate()), refuseReserved(c.Election), fields(c.Config.Check())); err != nil {
		return err
	}
	if parent := c.Config.Delegation.Parent; parent != "" && !c.Election.ChildOf(parent) {
		return Invalid("policy.delegation.parent", fmt.Errorf("the parent of election %q is what stands before the last dot of its name, and not %q", c.Election, parent))
	}
	if c.IfRevision == NeverSeen {
		return nil
	}
	return validateCondition(c.IfRevision)
}

// Delete deletes an election: it leaves a tombstone. It is refused while the election has a leader,
// unless it is forced: then the lease ends in the store, its leader learns of it at its next
// renewal, and no lease is granted until the deleted one would have ended by itself (and its lock
// delay), not even after the election was brought back. A deleted election stays as it is.
//
// An election that has seats has a leader while one of them has. By force, its leaders go on until
// the end that each was promised.
//
// Errors: NotFound, RevisionMismatch, LeaseHeld.
type Delete struct {
	Election   Election
	IfRevision Revision // as in Configure, without NeverSeen
	Force      bool     // even while it is held
}

func (Delete) Name() string { return "delete" }

func (c Delete) Target() Target { return Target{Election: c.Election} }

func (c Delete) Validate() error {
	return cmp.Or(refuseReserved(c.Election), validateCondition(c.IfRevision))
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

func (Unlock) Name() string { return "unlock" }

func (c Unlock) Target() Target { return Target{Election: c.Election, Reason: c.Reason} }

func (c Unlock) Validate() error { return fields(validateWord(c.Actor, c.Reason)) }
