package rule

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// change starts a Change from what was read. An election that was never seen begins at the floor,
// with its lock.
func (s *Snapshot) change() Change {
	ch := Change{Record: s.Record}
	if r := &ch.Record; !s.Exists() && s.Floor.Token > 0 {
		r.Token, r.Revision = s.Floor.Token, leadership.Revision(s.Floor.Token)+1 // only a raised election has its token as its revision
		r.EndedAt, r.LockFor = s.Now, max(s.Floor.Until.Sub(s.Now), 0)
	}
	return ch
}

// announce adds the event of a change that is already made in c.Record.
func (c *Change) announce(t leadership.EventType, previous leadership.CandidateID) {
	c.Record.Revision++
	c.Events = append(c.Events, leadership.Event{
		Election:         c.Record.Election,
		Revision:         c.Record.Revision,
		Type:             t,
		LeaderID:         c.Record.LeaderID,
		PreviousLeaderID: previous,
		Token:            c.Record.Token,
	})
}

// vacate ends the lease in c.Record.
func (c *Change) vacate(t leadership.EventType, endedAt time.Time, lockFor time.Duration) {
	previous, because := c.Record.LeaderID, c.Record.endedBecause(endedAt)
	c.Record = c.Record.Vacated(endedAt, lockFor)
	c.Record.Standing.Ended = endedBy(t, c.Record.Token, because)
	c.announce(t, previous)
}

// expire records the end of a lease that ran out by itself.
func (c *Change) expire(guard time.Duration) {
	c.runOut(c.Record.LeaseEnd(), guard)
}

// runOut ends a lease that was not renewed before its end. One that ended because its leader made
// no progress is a trip; after one that ended for want of an approval, no lease is granted until
// there is one.
func (c *Change) runOut(endedAt time.Time, guard time.Duration) {
	r := &c.Record
	event, because := leadership.EventExpired, r.endedBecause(endedAt)
	r.Standing.endProbation(r.LeaderID, endedAt)
	why, detail := c.limited(because, endedAt)
	if why != "" {
		event, r.Standing.Deposed = leadership.EventDeposed, deposed{r.Token, why}
	}
	if why != "" || because == "" {
		c.fail(endedAt)
	}
	c.vacate(event, endedAt, r.Policy.LockDelay+guard)
	c.explain(why, detail)
	c.park(endedAt)
}

// limited records the consequences of a limit that has ended the term, for a change that vacates
// the election. It returns why the term tripped, "" if it did not, and the event's detail.
func (c *Change) limited(because leadership.EndReason, endedAt time.Time) (why string, detail leadership.Detail) {
	r := &c.Record
	detail.EndsBecause = because
	switch p := r.Policy.Term; {
	case because == leadership.EndsStuck && p.StuckAfter > 0 && p.OnTrip != leadership.TripNotify:
		progress := r.Standing.Report.Report().Progress
		why = fmt.Sprintf("it has reported no progress beyond %d for %s", progress, form.Spoken(p.StuckAfter))
		detail.Progress, detail.StuckAfterMS = &progress, p.StuckAfter.Milliseconds()
		r.bar(endedAt, why, &detail)
	case because == leadership.EndsApproval && p.Approval.Every > 0:
		r.Standing.Approval.Awaited = true // approvals too late for this term count for the next
	}
	return why, detail
}

// yields returns the limit that forces a leader to release now; "" if none does. A leader that
// obeys its deadline stops, and releases, a while before the end. So a limit counts as the reason
// if no renewal would extend the lease, and at most half of a lease is left.
func (r *Record) yields(now time.Time) leadership.EndReason {
	var span time.Duration
	switch r.EndsBecause {
	case leadership.EndsStuck:
		span = r.Policy.Term.StuckAfter
	case leadership.EndsApproval:
		span = r.Policy.Term.Approval.Every
	}
	if span = min(span, r.LeaseDuration); span == 0 || r.EndsBy.Sub(now) > span/2 {
		return ""
	}
	return r.EndsBecause
}

// Acquire grants the lease, with the next token, if the election has no leader and no lock delay
// runs.
//
// For the leader itself (same candidate, same key, before the end) it is a renewal: same token. It
// then also takes over a longer lease duration and other metadata, with an event. A shorter
// duration waits for the next grant: if the reply were lost, the leader would go on believing in
// the longer one. Another Candidacy waits, too: a leader counts with its Candidacy at the grant.
//
// A candidate that asks for more than Config.MaxLeaseDuration is refused, whether the election is
// held or not. A leader may ask again for a duration that it was granted before the limit became
// lower.
//
// If the policy asks for a ballot, the candidate is granted when its turn has come; before that the
// change is its bid, if the bid is needed. If the candidate may preempt the leader, the change ends
// the term at the end that the leader was promised. In both cases the change grants nothing, and
// the caller of the store must refuse the candidate: see Service.Acquire.
//
// With Restore the same change brings a deleted election back and grants it.
//
// An election that has seats is never granted itself, only its seats: see NeedsSeat.
//
// Errors: InvalidArgument; LeaseHeld, with a Reason; NotEligible; ElectionDeleted; with Restore
// RevisionMismatch; RecordCorrupt when there is no further token.
func Acquire(s Snapshot, c AcquireCommand) (Change, error) {
	r := s.Record
	if r.Standing.Untold > 0 && c.Seats == nil {
		return s.acquireUntold(c)
	}
	s.Halts = c.Halts
	if r.Deleted && c.Restore != 0 {
		return s.restore(c)
	}
	if r.Deleted {
		return Change{}, s.RefuseDeleted()
	}
	if err := s.refuseLonger(c); err != nil {
		return Change{}, err
	}
	if s.Live() && !r.Yielded() && r.LeaderID == c.CandidateID && r.KeyHash.Equal(c.KeyHash) {
		return reacquire(s, c), nil
	}
	if r.Policy.Seats > 0 {
		return s.acquireWhole(c)
	}
	s, err := s.seated(c)
	if err != nil {
		return Change{}, err
	}
	if r = s.Record; r.Standing.Seat > 0 { // decide by the whole's present policy
		if err := s.refuseLonger(c); err != nil {
			return Change{}, err
		}
	}
	if err := cmp.Or(s.refuseIneligible(c), s.refuseOrphan(c), s.refuseUncounted(c)); err != nil {
		return Change{}, err
	}
	if s.takesOver(c) {
		return s.takeOver(c)
	}
	if barriers := s.barriers(c.CandidateID, c.Principal); len(barriers) > 0 {
		if only := barriers[0]; only.Code == leadership.ReasonHeld && r.Policy.Ballot.Preempt {
			return s.challenge(c, only)
		}
		return Change{}, s.refuseBarred(c.CandidateID, barriers)
	}
	if err := s.refuseGrant(c); err != nil {
		return Change{}, err
	}
	ch := s.change()
	if r.LeaderID != "" {
		ch.expire(s.Guard)
	}
	if witness(c.Candidacy) || r.Policy.Ballot.HasBallot() {
		return s.vote(ch, c)
	}
	ch.grant(c, s.Now)
	return ch, nil
}

// restore brings a deleted election back and grants its lease.
func (s Snapshot) restore(c AcquireCommand) (Change, error) {
	back, err := configure(s, leadership.Configure{IfRevision: c.Restore})
	if err != nil {
		return Change{}, err
	}
	restored := s
	restored.Record = back.Record
	ch, err := Acquire(restored, c)
	if refused, ok := errors.AsType[*leadership.Error](err); ok && refused.Lease != nil {
		refused.Lease = new(s.Lease()) // it stays deleted
	}
	ch.Events = append(back.Events, ch.Events...)
	return ch, err
}

// refuseGrant returns why there can be no grant, even if no barrier is in the candidate's way; nil
// if there can.
func (s *Snapshot) refuseGrant(c AcquireCommand) error {
	if s.Record.Token >= leadership.MaxToken {
		return Corrupt(s.Record.Election, fmt.Errorf("there is no fencing token after %d", s.Record.Token))
	}
	return s.refuseAlone(c)
}

func (c *Change) grant(cmd AcquireCommand, now time.Time) {
	r := &c.Record
	r.Token++
	r.LeaderID, r.KeyHash, r.Metadata = cmd.CandidateID, cmd.KeyHash, cmd.Metadata
	r.Standing = r.Standing.granted(cmd, r.Policy.Config, now)
	r.LeaseDuration = cmp.Or(cmd.LeaseDuration, r.Policy.EffectiveLease())
	c.tryOut(now)
	c.begin(now)
	r.Standing.Created = r.created()
	r.AcquiredAt, r.HeartbeatAt = now, now
	r.EndedAt, r.LockFor = time.Time{}, 0
	c.Heartbeat = true
	c.announce(leadership.EventAcquired, "")
}

func reacquire(s Snapshot, cmd AcquireCommand) Change {
	ch := s.heartbeat()
	r := &ch.Record
	ch.moveOn(cmd.Parent)
	ch.passProbation(s.Now)
	if !r.Standing.Probation.Until.IsZero() {
		cmd.LeaseDuration = min(cmd.LeaseDuration, leadership.ProbationLease)
	}
	longer := cmd.LeaseDuration > r.LeaseDuration
	other := cmd.Metadata != "" && cmd.Metadata != r.Metadata
	if longer {
		r.LeaseDuration = cmd.LeaseDuration
	}
	if other {
		r.Metadata = cmd.Metadata
	}
	if cmd.Note != "" && cmd.Note != r.Standing.Note {
		r.Standing.Note, other = cmd.Note, true
	}
	if longer || other {
		ch.announce(leadership.EventUpdated, "")
	}
	return ch
}

// heartbeat renews a live lease.
func (s *Snapshot) heartbeat() Change {
	ch := s.change()
	ch.Heartbeat, ch.Before = true, s.Record.LeaseEnd()
	return ch
}

// Renewal names the exact lease that its leader wants to keep.
type Renewal struct {
	Election    leadership.Election
	CandidateID leadership.CandidateID
	KeyHash     leadership.KeyHash
	Token       leadership.Token
	// Ticket is from the answer to the last heartbeat, or empty. It saves a store's Renew a read;
	// no rule looks at it.
	Ticket leadership.Ticket
	// Report is the leader's account of its work, or empty. A store's Renew takes none.
	Report leadership.ReportText
	// Parent is the present state of the lease that this one stands on; zero if that was not read.
	// A store's Renew takes none.
	Parent ParentLease
}

// Holds reports whether r has the lease that c names, whether it has ended or not.
func (c *Renewal) Holds(r *Record) bool {
	return r.LeaderID != "" && r.Token == c.Token && r.LeaderID == c.CandidateID && r.KeyHash.Equal(c.KeyHash)
}

// after returns c with the token of a later epoch, if operators have begun one for its leader.
func (c Renewal) after(r Record) Renewal {
	if r.LeaderID == c.CandidateID && r.KeyHash.Equal(c.KeyHash) && r.GoesOnFrom(c.Token) {
		c.Token = r.Token
	}
	return c
}

// Heartbeat is the rule Renew for a renewal without a report and a parent. last is used in place of
// r.HeartbeatAt. It reports whether the lease is renewed, and returns the end that it had. A
// renewal changes only HeartbeatAt, to what StartOf returns, so a store need not check the rest
// again.
func (r *Record) Heartbeat(c *Renewal, last, now time.Time) (before time.Time, ok bool) {
	before = r.endAfter(last)
	return before, c.Holds(r) && now.Before(before) && !r.Yielded()
}

// Renew restarts the lease if it is the caller's and has not ended. Without a report it has no
// event.
//
// The policy judges the report: progress moves the end of the term on, and a leader that trips
// loses its lease, with an event. In that case the change is no heartbeat, and the caller of the
// store must refuse the renewal: see Service.Renew.
//
// Errors: LeaseLost, with the election as it is; InvalidArgument, if a counter has fallen.
func Renew(s Snapshot, c Renewal) (Change, error) {
	if !s.Leads(c) {
		return Change{}, s.RefuseLost(c)
	}
	ch := s.heartbeat()
	ch.moveOn(c.Parent)
	if c.Report == "" {
		return ch, nil
	}
	if err := ch.report(s, c.Report); err != nil {
		return Change{}, err
	}
	return ch, nil
}

func release(s Snapshot, cmd leadership.Release) (Change, error) {
	ch, err := leave(s, cmd)
	if err == nil && !ch.Empty() && s.Live() {
		ch.park(s.Now)
	}
	return ch, err
}

// leave is release without parking the election.
func leave(s Snapshot, cmd leadership.Release) (Change, error) {
	r := s.Record
	c := leaseOf(cmd.LeaseRequest).after(r)
	switch {
	case c.Token > r.Token, c.Token == r.Token && r.LeaderID != "" && !c.Holds(&r):
		return Change{}, s.RefuseLost(c)
	case c.Token < r.Token || r.LeaderID == "", s.Live() && r.Yielded():
		return Change{}, nil
	case !cmd.IfHeartbeat.IsZero() && !cmd.IfHeartbeat.Equal(r.HeartbeatAt):
		return Change{}, s.Refuse(leadership.RevisionMismatch, "the lease of election %q was renewed since it was read", r.Election)
	}
	ch := s.change()
	if s.Live() {
		ch.Record.Standing.endProbation(r.LeaderID, s.Now)
		why, detail := ch.limited(r.yields(s.Now), s.Now)
		if detail.Outcome = cmd.Outcome; cmd.Outcome == leadership.OutcomeFailed || why != "" && cmd.Outcome != leadership.OutcomeDone {
			ch.fail(s.Now)
		}
		ch.vacate(leadership.EventReleased, s.Now, 0)
		ch.explain(cmp.Or(why, cmd.Note), detail)
	} else {
		ch.expire(s.Guard)
	}
	ch.leave(s)
	return ch, nil
}

// Expire records that the lease has run out, if it has. It is for a lease that no candidate takes
// over.
func Expire(s Snapshot) (Change, error) {
	if !s.Over() {
		return Change{}, nil
	}
	ch := s.change()
	ch.expire(s.Guard)
	ch.leave(s)
	return ch, nil
}

// Retire deletes the election, as Delete does, if it has been vacant for its policy's RetireAfter.
// The vacancy begins with the end of the last lease, or when the vacant election was last
// configured with a RetireAfter. The event says that it was retired.
func Retire(s Snapshot) (Change, error) {
	at := s.Record.RetireAt()
	if at.IsZero() || s.Now.Before(at) {
		return Change{}, nil
	}
	after := s.Record.Policy.RetireAfter
	ch := s.change()
	ch.Record.Deleted = true
	ch.Record.Standing.closeBallot()
	ch.announce(leadership.EventDeleted, "")
	ch.explain(fmt.Sprintf("retired: it was vacant for %s, as its retireAfter says", form.Spoken(after)), leadership.Detail{RetireAfterMS: after.Milliseconds()})
	return ch, nil
}

// Lapse records the end of a lease whose renewal, or other change that extends it, was committed
// too late. late is the start that the lease has by that change, before is the end that it had. It
// does nothing if the record has changed since: the leader was then told that its lease goes on.
func Lapse(s Snapshot, token leadership.Token, late, before time.Time) (Change, error) {
	r := s.Record
	if r.LeaderID == "" || r.Token != token || !r.HeartbeatAt.Equal(late) {
		return Change{}, nil
	}
	ch := s.change()
	ch.runOut(before, s.Guard)
	return ch, nil
}

// Check returns nil if the token is that of the present leader, and TokenStale otherwise. A token
// whose lease has ended is stale even before the next grant; so is a token that was never granted.
func Check(s Snapshot, token leadership.Token) error {
	r := s.Record
	switch {
	case token == r.Token && s.Live() && !r.Yielded():
		return nil
	case token == r.Token && s.Live():
		return s.Refuse(leadership.TokenStale, "the leader of election %q with fencing token %d has yielded to its successor; do not act on it", r.Election, token)
	case token > r.Token:
		return s.Refuse(leadership.TokenStale, "fencing token %d of election %q was never granted; the newest is %d", token, r.Election, r.Token)
	case token == r.Token:
		return s.Refuse(leadership.TokenStale, "the lease of fencing token %d of election %q has ended; do not act on it", token, r.Election)
	}
	return s.Refuse(leadership.TokenStale, "fencing token %d of election %q is stale: %d has been granted since; do not act on it", token, r.Election, r.Token)
}

// Presence tells which members an instance has heard of lately. nil: none.
type Presence map[leadership.CandidateID]bool

// AcquireCommand is an AcquireRequest in the form that the rule Acquire takes.
type AcquireCommand struct {
	CandidateID   leadership.CandidateID
	Principal     []string // the names of the caller's verified principal, the permanent one last; none if it is not verified
	KeyHash       leadership.KeyHash
	LeaseDuration time.Duration       // 0: as the election is configured
	Metadata      leadership.Metadata // "": none or, for a leader that acquires again, as before
	Note          string              // "": as for Metadata
	leadership.Candidacy
	Instance uint32 // this and the next two are from AcquireRequest.InLine
	Waited   time.Duration
	Withdraw leadership.CandidateID
	Present  Presence    // of the electorate, if there is one
	Parent   ParentLease // the present lease of AcquireRequest.Via or of the election's parent
	Secret   string      // of the draw after this term, or for this one if it is the first
	Restore  leadership.Revision
	Whole    *Snapshot            // for a seat: the election that it is a seat of, as it was read; otherwise nil
	Seats    []leadership.Seat    // of an election with seats, and of a seat: all that are known
	Along    []leadership.Standby // that of Seating
	Halts    leadership.Overrides // the standing orders of HaltsElection
}

// leaseOf returns the lease that a valid command names.
func leaseOf(r leadership.LeaseRequest) Renewal {
	hash := r.KeyHash
	if r.Key != (leadership.Key{}) {
		hash = r.Key.Hash()
	}
	return Renewal{Election: r.Election, CandidateID: r.CandidateID, KeyHash: hash, Token: r.Token}
}

// Request returns c as the LeaseRequest of a command, for a program that does not know the key.
func (c Renewal) Request() leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: c.Election, CandidateID: c.CandidateID, KeyHash: c.KeyHash, Token: c.Token}
}
