package rule

import (
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// Refuse returns an error of a rule, with the election as the rule saw it.
func (s *Snapshot) Refuse(code leadership.Code, format string, args ...any) *leadership.Error {
	l := s.Lease()
	return &leadership.Error{Code: code, Detail: fmt.Sprintf(format, args...), Lease: &l}
}

// refuseFor returns LeaseHeld for a cause; wait is after how long to try again.
func (s *Snapshot) refuseFor(why leadership.Cause, wait time.Duration, format string, args ...any) error {
	err := s.Refuse(leadership.LeaseHeld, format, args...)
	err.Reason, err.RetryAfter, err.Cause = why.Code, wait, &why
	return err
}

func (s *Snapshot) RefuseUnseen() error {
	return &leadership.Error{Code: leadership.NotFound, Detail: fmt.Sprintf("election %q was never seen; the first acquire, or its configuration, creates it", s.Record.Election)}
}

func (s *Snapshot) RefuseDeleted() error {
	if of, n, ok := s.Record.Election.SeatOf(); ok && s.Record.Standing.Seat > 0 {
		return s.Refuse(leadership.ElectionDeleted, "election %q has no seat %d any more; acquire %q", of, n, of)
	}
	return s.Refuse(leadership.ElectionDeleted, "election %q is deleted; an operator brings it back by configuring it, and its fencing token goes on from %d", s.Record.Election, s.Record.Token)
}

// refuseHeld returns LeaseHeld with the present leader, if there is one, the time left to wait, and
// the reason: ReasonHeld for a live lease, or ReasonLockDelay.
func (s *Snapshot) refuseHeld(by leadership.CandidateID, left time.Duration, reason leadership.Reason) error {
	r := s.Record
	if reason == leadership.ReasonHeld && !r.Yielded() && r.LeaderID == by {
		reason = leadership.ReasonIncarnation
	}
	in := left.Round(time.Millisecond)
	var detail string
	switch {
	case reason != leadership.ReasonLockDelay && r.Yielded():
		detail = fmt.Sprintf("%q has yielded election %q to %q, which takes it over within %v; try again then", r.LeaderID, r.Election, s.successor(), in)
	case reason == leadership.ReasonLockDelay && r.LeaderID != "" && r.Policy.LockDelay == 0:
		detail = fmt.Sprintf("the lease of %q on election %q has just ended; the next is granted in %v, for the clocks of the store's servers may differ; try again then", r.LeaderID, r.Election, in)
	case reason == leadership.ReasonLockDelay:
		detail = fmt.Sprintf("election %q cannot be led for another %v: its last lease ended without a release, or by force; try again then", r.Election, in)
	case reason == leadership.ReasonIncarnation:
		detail = fmt.Sprintf("%q leads election %q already, with another key; renew with that key, or try again in %v", by, r.Election, in)
	default:
		detail = fmt.Sprintf("%q leads election %q; its lease ends in %v unless it renews; try again then", r.LeaderID, r.Election, in)
	}
	err := s.Refuse(leadership.LeaseHeld, "%s", detail)
	err.Reason, err.RetryAfter = reason, left
	return err
}

// refuseLonger returns an error if the candidate asks for a longer lease than the policy allows. A
// leader may keep the duration that it has.
func (s *Snapshot) refuseLonger(c AcquireCommand) error {
	r, most := s.Record, s.Record.Policy.MaxLeaseDuration
	if most == 0 || c.LeaseDuration <= most {
		return nil
	}
	if leads := s.Live() && r.LeaderID == c.CandidateID && r.KeyHash.Equal(c.KeyHash); leads && c.LeaseDuration <= r.LeaseDuration {
		return nil
	}
	return leadership.Invalid("leaseDuration", fmt.Errorf("a lease of election %q lasts %s at most, as an operator has configured, not %s; ask for %s or less",
		r.Election, form.Spoken(most), form.Spoken(c.LeaseDuration), form.Spoken(most)))
}

// refuseUnlock returns a refusal that says what an unlock would risk, and how to confirm it.
func (s *Snapshot) refuseUnlock(reason leadership.Reason, until time.Time) error {
	r := s.Record
	risk := "its last leader may still act, because its lease ended without a release, or by force"
	switch {
	case s.Live() && r.Yielded():
		risk = fmt.Sprintf("%q has yielded it, and %q takes it over if it comes by the end of the lease", r.LeaderID, s.successor())
	case s.Live():
		risk = fmt.Sprintf("%q leads it, and goes on until it hears of the end of its lease", r.LeaderID)
	}
	err := s.Refuse(leadership.LeaseHeld, "election %q is not unlocked: %s; if the next candidate shall lead all the same, repeat the call with exactly this acknowledge: %s",
		r.Election, risk, acknowledgement(until))
	err.Reason = reason
	return err
}

// RefuseLost returns LeaseLost for a caller that does not lead, or no longer leads.
func (s *Snapshot) RefuseLost(c Renewal) error {
	r, deposed := s.Record, s.ended().Record.Standing.Deposed
	switch {
	case s.Live() && c.after(r).Token > c.Token:
		err := s.Refuse(leadership.LeaseLost, "election %q has a new epoch, by an operator's order: fencing token %d is %d now; stop what was begun under the old one, acquire again with the same key, and go on", r.Election, c.Token, r.Token)
		err.Reason = leadership.ReasonEpoch
		return err
	case r.Token == c.Token && deposed.Token == c.Token:
		err := s.Refuse(leadership.LeaseLost, "the lease of election %q with fencing token %d was ended, as its policy says: %s; stop acting as its leader", r.Election, c.Token, deposed.Why)
		err.Reason, err.Cause = leadership.ReasonDeposed, &leadership.Cause{Code: leadership.ReasonDeposed, Actor: "policy", Because: deposed.Why}
		return err
	case s.Live() && c.Holds(&r) && r.Yielded():
		return s.Refuse(leadership.LeaseLost, "the lease of election %q with fencing token %d was yielded to %q: stop acting as its leader", r.Election, c.Token, s.successor())
	case r.Deleted:
		return s.Refuse(leadership.LeaseLost, "election %q is deleted: stop acting as its leader", r.Election)
	case c.Holds(&r):
		return s.Refuse(leadership.LeaseLost, "the lease of election %q with fencing token %d has ended: stop acting as its leader, and acquire again", r.Election, c.Token)
	case s.Live() && r.LeaderID == c.CandidateID && r.Token == c.Token:
		return s.Refuse(leadership.LeaseLost, "the lease of election %q with fencing token %d was granted with another key; stop acting as its leader", r.Election, c.Token)
	case s.Live():
		return s.Refuse(leadership.LeaseLost, "%q leads election %q with fencing token %d: stop acting as its leader", r.LeaderID, r.Election, r.Token)
	}
	if !s.Exists() {
		return s.Refuse(leadership.LeaseLost, "election %q never had a leader: stop acting as its leader, and acquire", r.Election)
	}
	return s.Refuse(leadership.LeaseLost, "election %q has no leader, and its newest fencing token is %d: stop acting as its leader, and acquire again", r.Election, r.Token)
}
