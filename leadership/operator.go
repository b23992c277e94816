package leadership

import (
	"cmp"
	"fmt"
)

// Configure sets an election's configuration. It creates an election that was never seen, and
// brings back one that is deleted.
//
//   - A held lease keeps its duration; the next one gets the new default.
//   - A limit of the term that is no longer configured is lifted at once; a new one counts from the
//     next grant.
//   - Bids already written no longer count: the next one opens a ballot by the new rules. If the
//     rules of ballots change, a challenge is taken back; a better candidate that still waits may
//     challenge again.
//   - A lock delay that is running ends when it would have.
//   - With RetireAfter the vacancy counts from now, so that an election that was brought back is
//     not retired at once.
//
// Idempotent: writes nothing if the configuration is already set, and then ignores the condition
// (RFC 9110 §13.1.1 lets a server answer so).
//
// Errors: RevisionMismatch.
type Configure struct {
	Election Election
	Config   Config
	// IfRevision is the revision that the election must be at; NeverSeen: it must not exist; 0: no
	// condition. Without a condition a late copy of the call undoes later changes.
	IfRevision Revision
}

// In returns the command for election e.
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

// Delete deletes an election and leaves a tombstone. It is refused while the election has a leader,
// unless it is forced: then the lease ends in the store, the leader learns of it at its next
// renewal, and no lease is granted until the deleted one and its lock delay would have ended, not
// even after the election was brought back. Deleting a deleted election does nothing.
//
// An election with seats has a leader if any seat has one. A forced delete lets each of its leaders
// go on until the end that it was promised.
//
// Errors: NotFound, RevisionMismatch, LeaseHeld.
type Delete struct {
	Election   Election
	IfRevision Revision // as in Configure, without NeverSeen
	Force      bool     // delete it even while it has a leader
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
// because the next grant has a higher one. So Unlock is refused unless Acknowledge repeats the
// sentence of the refusal: "two leaders may believe until" and the instant at which the wait would
// have ended by itself. Another lease or a renewal changes that instant, and the new sentence has
// to be repeated. To stop the renewals, take the leader's rights away, or delete the election by
// force and bring it back.
//
// It writes nothing if no lease or lock is in the way, so it may be repeated.
//
// Errors: NotFound; ElectionDeleted; LeaseHeld, with the sentence.
type Unlock struct {
	Election Election
	Reason   string // why, for people: one line of 1 to MaxReasonBytes bytes
	// Acknowledge is the sentence of the refusal, word for word.
	Acknowledge string
	Actor       string // the principal that unlocks
}

func (Unlock) Name() string { return "unlock" }

func (c Unlock) Target() Target { return Target{Election: c.Election, Reason: c.Reason} }

func (c Unlock) Validate() error { return fields(validateWord(c.Actor, c.Reason)) }
