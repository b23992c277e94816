package rule

import (
	"errors"
	"fmt"
	"time"

	"regent/leadership"
)

// Record is one election as a store keeps it, for ever. A Record with only a name is an election
// that was never seen. Callers see a Lease instead, and each store has its own stored form. All
// times are the store's.
//
// Stores need the fields down to LockFor for their conditions. They only carry Policy and Standing,
// in the text form of Codec. Records are compared with ==.
type Record struct {
	Election leadership.Election
	Token    leadership.Token    // of the last grant; it never goes back
	Revision leadership.Revision // of the newest event
	Needs    Version             // the lowest version of a program that may decide on the record; set by Codec
	Deleted  bool                // a tombstone: the election has no leader

	LeaderID      leadership.CandidateID // empty once the end of the lease is recorded
	KeyHash       leadership.KeyHash     // of the leader's key; zero without a leader
	LeaseDuration time.Duration
	AcquiredAt    time.Time            // when the grant was committed, as its event says; for people
	HeartbeatAt   time.Time            // when the last heartbeat was committed
	EndsBy        time.Time            // no heartbeat extends the lease beyond this instant; zero: no limit
	EndsBecause   leadership.EndReason // why there is an EndsBy; empty without one
	Metadata      leadership.Metadata

	// EndedAt is when the last lease ended or when the vacant election was configured, whichever is
	// later. It is zero with a leader, and if there was neither.
	EndedAt time.Time
	LockFor time.Duration // no grant for that long after EndedAt, guard included; 0 after a release

	Policy   Policy
	Standing Standing
}

// maxEndReasonBytes bounds reasons, of later versions too.
const maxEndReasonBytes = 64

// LeaseEnd returns the instant at which the lease ends unless a heartbeat is committed before it:
// LeaseDuration after HeartbeatAt, but EndsBy at the latest. It is meaningless without a leader.
func (r *Record) LeaseEnd() time.Time { return r.endAfter(r.HeartbeatAt) }

// endAfter is LeaseEnd for another HeartbeatAt.
func (r *Record) endAfter(heartbeat time.Time) time.Time {
	end := heartbeat.Add(r.LeaseDuration)
	if !r.EndsBy.IsZero() && r.EndsBy.Before(end) {
		return r.EndsBy
	}
	return end
}

// StartOf returns the start of a lease of duration d whose heartbeat was committed at the given
// instant and had to be committed before due (zero: a grant, which has no limit). A late heartbeat
// leaves the end where it was, at due, so the lease counts as over without a clean-up.
func StartOf(committed, due time.Time, d time.Duration) time.Time {
	if due.IsZero() || committed.Before(due) {
		return committed
	}
	return due.Add(-d)
}

// RetireAt returns the instant from which the rule Retire deletes the election if it stays as it
// is; zero if Retire does not delete it. It is never before a lock has ended.
func (r *Record) RetireAt() time.Time {
	if r.LeaderID != "" || r.Deleted || r.Policy.RetireAfter == 0 || r.EndedAt.IsZero() {
		return time.Time{}
	}
	return r.EndedAt.Add(max(r.Policy.RetireAfter, r.LockFor))
}

// DueAt returns the instant from which a tick has work to do for the election if it stays as it is:
// at once if some of its seats may not have been told of its last change, and otherwise RetireAt;
// zero if never. A store may index it to find elections that are due; no rule decides by it.
func (r *Record) DueAt() time.Time {
	if r.Standing.Untold > 0 {
		return r.EndedAt
	}
	return r.RetireAt()
}

// Vacated returns r once its lease has ended at the given instant.
func (r Record) Vacated(endedAt time.Time, lockFor time.Duration) Record {
	if s := &r.Standing; !s.Ends.Approval.IsZero() && !s.Approval.Awaited {
		s.ApprovalLeft = max(s.Ends.Approval.Sub(endedAt), leadership.MinOrder)
	}
	r.spend(endedAt)
	r.EndedAt, r.LockFor = endedAt, lockFor
	r.LeaderID, r.KeyHash, r.LeaseDuration, r.Metadata = "", leadership.KeyHash{}, 0, ""
	r.Standing.Created = r.created()
	r.AcquiredAt, r.HeartbeatAt = time.Time{}, time.Time{}
	r.EndsBy, r.EndsBecause = time.Time{}, ""
	r.Standing = r.Standing.vacated()
	return r
}

// created returns Standing.Created or, if that is not set, the time of the grant.
func (r *Record) created() int64 {
	if r.Standing.Created == 0 && !r.AcquiredAt.IsZero() {
		return r.AcquiredAt.Unix()
	}
	return r.Standing.Created
}

// Snapshot is one election at one moment of the store's time.
type Snapshot struct {
	Record Record
	// Now is the store's time at which Record was read or, after a change, committed.
	Now time.Time
	// Guard is how long the store waits after a lease's end before it grants the next one, because
	// the clocks of its servers may differ by that much: 50 ms on cloud stores, 0 with one clock.
	Guard time.Duration
	// Ticket is for the next renewal. Only a store that needs tickets sets it, and only in its
	// answer to a heartbeat.
	Ticket leadership.Ticket
	// Halts are the standing orders of HaltsElection, for rules that need them. No store sets them.
	Halts leadership.Overrides
	// Floor applies to an election that was never seen. The service sets it, no store does.
	Floor Floor
}

// Floor limits elections that a store restored from a backup has never seen, because they may have
// been led after the backup. The zero Floor does nothing.
type Floor struct {
	Token leadership.Token // the first token and the first revision are above it
	Until time.Time        // no lease is granted before this instant of the store's clock
}

// FloorOf returns the floor in the record of FloorElection.
func FloorOf(s Snapshot) Floor {
	return Floor{Token: s.Record.Token, Until: s.Record.EndedAt.Add(s.Record.LockFor)}
}

// Exists reports whether the election was ever seen.
func (s *Snapshot) Exists() bool { return s.Record.Revision > 0 }

// Live reports whether the election has a leader: a lease was granted and has not ended.
func (s *Snapshot) Live() bool {
	return s.Record.LeaderID != "" && s.Now.Before(s.Record.LeaseEnd())
}

// Over reports whether a lease has ended and its end is not recorded yet.
func (s *Snapshot) Over() bool {
	return s.Record.LeaderID != "" && !s.Now.Before(s.Record.LeaseEnd().Add(s.Guard))
}

// ended returns s with the end of the lease recorded, if it has ended.
func (s *Snapshot) ended() *Snapshot {
	if s.Record.LeaderID == "" || s.Live() {
		return s
	}
	ch, after := s.change(), *s
	ch.expire(s.Guard)
	after.Record = ch.Record
	return &after
}

// blocked returns how long it takes until a new lease may be granted, and why.
func (s *Snapshot) blocked() (time.Duration, leadership.Reason) {
	r := &s.Record
	if r.LeaderID != "" {
		end := r.LeaseEnd()
		if s.Live() {
			return end.Add(s.Guard).Sub(s.Now), leadership.ReasonHeld
		}
		after := r.Vacated(end, r.Policy.LockDelay+s.Guard)
		r = &after
	}
	left := r.EndedAt.Add(r.LockFor).Sub(s.Now)
	if !s.Exists() {
		left = s.Floor.Until.Sub(s.Now)
	}
	if left > 0 && (r.LockFor > 0 || !s.Exists()) {
		return left, leadership.ReasonLockDelay
	}
	return 0, ""
}

// Newest identifies the newest event of an election in the store's history; zero if there is none.
type Newest struct {
	Revision leadership.Revision
	Token    leadership.Token
}

// clockTolerance is how far a heartbeat may lie ahead of the store's now before the record counts
// as damaged. The clocks of one store's servers differ by far less.
const clockTolerance = time.Minute

// Verify returns an error with the code RecordCorrupt unless the record agrees with itself and with
// the history. Every store calls it on what it reads, so a damaged or restored record is refused by
// name and never grants.
func Verify(s Snapshot, newest Newest) error {
	r := &s.Record
	var err error
	switch {
	case newest.Revision != r.Revision:
		err = fmt.Errorf("its revision is %d and that of its newest event is %d", r.Revision, newest.Revision)
	case newest.Token != r.Token:
		err = fmt.Errorf("its fencing token is %d and that of its newest event is %d", r.Token, newest.Token)
	case !s.Exists():
		return nil
	default:
		err = s.validate()
	}
	if err != nil {
		return Corrupt(r.Election, err)
	}
	return nil
}

// VerifyAlone is Verify for a store that has not read the history.
func VerifyAlone(s Snapshot) error {
	return Verify(s, Newest{Revision: s.Record.Revision, Token: s.Record.Token})
}

// Corrupt returns the error for a record that cannot be trusted or decoded.
func Corrupt(e leadership.Election, why error) error {
	return &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf(
		"the record of election %q cannot be trusted (%v); no lease is granted until an operator has mended the record, with a fencing token above every one ever seen", e, why)}
}

func (s *Snapshot) validate() error {
	r := &s.Record
	if err := r.Election.Validate(); err != nil {
		return err
	}
	if field, err := r.Policy.Config.Check(); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	switch {
	case r.Revision < 0 || r.Token < 0 || r.Token > leadership.MaxToken || int64(r.Token) > int64(r.Revision):
		return fmt.Errorf("fencing token %d and revision %d are impossible", r.Token, r.Revision)
	case r.LockFor < 0 || r.LockFor > leadership.MaxLockDelay+leadership.MaxLeaseDuration+clockTolerance+s.Guard:
		return fmt.Errorf("a lock of %v is impossible", r.LockFor)
	case r.Standing.Deposed.Token > r.Token:
		return fmt.Errorf("fencing token %d was deposed, and the newest is %d", r.Standing.Deposed.Token, r.Token)
	case r.Standing.Ended.Token > r.Token:
		return fmt.Errorf("the term of fencing token %d has ended, and the newest is %d", r.Standing.Ended.Token, r.Token)
	case r.Standing.Opened.IsZero() != (r.Standing.Bids == ""), r.Standing.Delay > 0 && r.Standing.Bids == "":
		return errors.New("of a ballot and its bids, one is missing")
	case r.EndedAt.After(s.Now.Add(clockTolerance)):
		return errors.New("its last lease ended in the future")
	case r.LeaderID == "":
		return r.validateVacant()
	}
	return s.validateHeld()
}

func (r *Record) validateVacant() error {
	switch {
	case r.KeyHash != (leadership.KeyHash{}) || r.LeaseDuration != 0 || r.Metadata != "" || !r.HeartbeatAt.IsZero(),
		!r.EndsBy.IsZero() || r.EndsBecause != "":
		return errors.New("it has parts of a lease and no leader")
	case r.EndedAt.IsZero() && (r.Token > 0 || r.LockFor > 0):
		return errors.New("it had a leader, and the end of the last lease is missing")
	case r.Standing.ofTerm():
		return errors.New("it has parts of a term and no leader")
	}
	return nil
}

func (s *Snapshot) validateHeld() error {
	r := &s.Record
	switch {
	case r.Deleted:
		return errors.New("it is deleted and has a leader")
	case r.Token == 0 || r.KeyHash == (leadership.KeyHash{}) || r.LeaseDuration == 0 || r.HeartbeatAt.IsZero():
		return errors.New("it has a leader and parts of its lease are missing")
	case r.HeartbeatAt.After(s.Now.Add(clockTolerance)):
		return errors.New("its last heartbeat lies in the future")
	case r.EndsBy.IsZero() != (r.EndsBecause == ""):
		return errors.New("of the latest end of its lease and the reason for that, one is missing")
	case r.Standing.Bids != "":
		return errors.New("it has a leader and bids")
	case r.Standing.Elected != (leadership.Bid{}) && r.Standing.Elected.CandidateID != r.LeaderID:
		return fmt.Errorf("%q was elected, and %q leads", r.Standing.Elected.CandidateID, r.LeaderID)
	case (r.Standing.Challenger == "") != r.Standing.Ends.Challenged.IsZero(), r.Standing.ChallengerAt != 0 && r.Standing.Challenger == "":
		return errors.New("of a challenge and the end that it sets, one is missing")
	case r.Yielded() && r.EndsBy.After(r.Standing.Succession.Yielded):
		return errors.New("its leader has yielded, and its lease lasts for longer")
	case r.EndsBy.IsZero() && r.Standing.limited():
		return errors.New("its term is limited, and its lease has no latest end")
	case r.Standing.EpochFrom >= r.Token:
		return fmt.Errorf("it goes on from fencing token %d, and has fencing token %d", r.Standing.EpochFrom, r.Token)
	case r.Standing.Succession.To == r.LeaderID, r.Standing.Succession.bound() == r.LeaderID:
		return fmt.Errorf("%q leads, and is its own successor", r.LeaderID)
	case len(r.EndsBecause) > maxEndReasonBytes:
		return fmt.Errorf("the reason for the end of its lease has %d bytes", len(r.EndsBecause))
	}
	if err := r.LeaderID.Validate(); err != nil {
		return err
	}
	return leadership.LeaseBounds.Check("leaseDuration", r.LeaseDuration)
}
