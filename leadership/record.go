package leadership

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Limits and defaults of durations.
const (
	MinLeaseDuration     = time.Second
	MaxLeaseDuration     = 24 * time.Hour
	DefaultLeaseDuration = 30 * time.Second
	MaxLockDelay         = 24 * time.Hour
)

// Config is what an operator sets for an election. The zero Config is valid.
type Config struct {
	// LeaseDuration is what a lease gets if its candidate does not ask for another: 1 s to 24 h in whole milliseconds, or 0
	// for DefaultLeaseDuration.
	LeaseDuration time.Duration
	// LockDelay is how long nobody may lead after a lease that ended without a release: 0 to 24 h in whole milliseconds.
	// It gives a leader that was cut off time to notice, at the price of a slower takeover.
	LockDelay time.Duration
}

func (c Config) leaseDuration() time.Duration { return cmp.Or(c.LeaseDuration, DefaultLeaseDuration) }

// explicit is c with the defaults filled in.
func (c Config) explicit() Config {
	c.LeaseDuration = c.leaseDuration()
	return c
}

func (c Config) validate() (field string, err error) {
	if err := validateLeaseDuration(c.LeaseDuration); err != nil {
		return "leaseDuration", err
	}
	if c.LockDelay < 0 || c.LockDelay > MaxLockDelay {
		return "lockDelay", fmt.Errorf("lockDelay is from 0s to %s, not %s", spoken(MaxLockDelay), spoken(c.LockDelay))
	}
	if c.LockDelay%time.Millisecond != 0 {
		return "lockDelay", fmt.Errorf("lockDelay is in whole milliseconds, not %v", c.LockDelay)
	}
	return "", nil
}

// validateLeaseDuration takes 0 for "the default".
func validateLeaseDuration(d time.Duration) error {
	switch {
	case d == 0:
		return nil
	case d < MinLeaseDuration || d > MaxLeaseDuration:
		return fmt.Errorf("leaseDuration is from %s to %s, not %s", spoken(MinLeaseDuration), spoken(MaxLeaseDuration), spoken(d))
	case d%time.Millisecond != 0:
		return fmt.Errorf("leaseDuration is in whole milliseconds, not %v", d)
	}
	return nil
}

// spoken is the duration as people write it: "24h", where String has "24h0m0s".
func spoken(d time.Duration) string {
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

// Record is what a store keeps of one election, for ever. The zero Record, but for its name, is an election never seen. It is
// not what callers see (that is Lease), nor is it the persisted form, which each store keeps to itself. All times are the store's.
type Record struct {
	Election Election
	Token    Token    // of the last grant; it never goes back
	Revision Revision // of the newest event
	Config   Config
	Deleted  bool // a tombstone: nobody leads

	LeaderID      CandidateID // who was granted the lease; empty once it is known to have ended
	KeyHash       KeyHash     // of the leader's key; zero without a leader
	LeaseDuration time.Duration
	AcquiredAt    time.Time // the store's now when the lease was granted; for people
	HeartbeatAt   time.Time // when the last heartbeat was committed
	Metadata      Metadata

	EndedAt time.Time     // when the last lease ended, if LeaderID is empty and there was one
	LockFor time.Duration // for how long from EndedAt nobody may lead, the store's guard included; 0 after a release
}

// LeaseEnd is the instant at which the lease ends unless a heartbeat is committed before it. It means nothing without a leader.
func (r Record) LeaseEnd() time.Time { return r.HeartbeatAt.Add(r.LeaseDuration) }

// vacated is r once its lease has ended at the given instant.
func (r Record) vacated(endedAt time.Time, lockFor time.Duration) Record {
	r.EndedAt, r.LockFor = endedAt, lockFor
	r.LeaderID, r.KeyHash, r.LeaseDuration, r.Metadata = "", KeyHash{}, 0, ""
	r.AcquiredAt, r.HeartbeatAt = time.Time{}, time.Time{}
	return r
}

// Snapshot is one election at one moment of the store's time.
type Snapshot struct {
	Record Record
	// Now is the store's time at which Record was read or, after a change, committed.
	Now time.Time
	// Guard is how long after a lease's end the store waits before it lets someone else lead, because its own servers' clocks may
	// differ by that much: 50 ms on cloud stores, 0 where there is one clock.
	Guard time.Duration
}

// exists says whether the election was ever seen.
func (s Snapshot) exists() bool { return s.Record.Revision > 0 }

// Live says whether somebody leads: a lease was granted and its end has not come.
func (s Snapshot) Live() bool {
	return s.Record.LeaderID != "" && s.Now.Before(s.Record.LeaseEnd())
}

// over says whether a lease was granted, has ended, and nobody has recorded that yet.
func (s Snapshot) over() bool {
	return s.Record.LeaderID != "" && !s.Now.Before(s.Record.LeaseEnd().Add(s.Guard))
}

// blocked returns how long it takes until a new lease may be granted, and why.
func (s Snapshot) blocked() (time.Duration, Reason) {
	r := s.Record
	if r.LeaderID != "" {
		end := r.LeaseEnd()
		if left := end.Add(s.Guard).Sub(s.Now); left > 0 {
			return left, ReasonHeld
		}
		r = r.vacated(end, r.Config.LockDelay+s.Guard)
	}
	if left := r.EndedAt.Add(r.LockFor).Sub(s.Now); r.LockFor > 0 && left > 0 {
		return left, ReasonLockDelay
	}
	return 0, ""
}

// Newest is the newest event of an election as the store's history has it; zero if there is none.
type Newest struct {
	Revision Revision
	Token    Token
}

// clockTolerance is how far a heartbeat may lie ahead of the store's now before the record is held to be damaged. It is far above
// what servers of one store differ by, and far below anything that a lease would be granted early by.
const clockTolerance = time.Minute

// Verify says whether a decision may stand on the record: whether it agrees with itself and with the history. Every store calls it
// before it runs a rule, so that a damaged or restored record is refused by name and never grants. The error has the code
// RecordCorrupt.
func Verify(s Snapshot, newest Newest) error {
	r := s.Record
	var err error
	switch {
	case newest.Revision != r.Revision:
		err = fmt.Errorf("its revision is %d and that of its newest event is %d", r.Revision, newest.Revision)
	case newest.Token != r.Token:
		err = fmt.Errorf("its fencing token is %d and that of its newest event is %d", r.Token, newest.Token)
	case !s.exists():
		return nil
	default:
		err = s.validate()
	}
	if err != nil {
		return Corrupt(r.Election, err)
	}
	return nil
}

// Corrupt is the error of a record that cannot be trusted, for stores that cannot even read it.
func Corrupt(e Election, why error) error {
	return &Error{Code: RecordCorrupt, Detail: fmt.Sprintf(
		"the record of election %q cannot be trusted (%v); nobody is granted this leadership until an operator has mended the record, with a fencing token above every one ever seen", e, why)}
}

func (s Snapshot) validate() error {
	r := s.Record
	if err := r.Election.Validate(); err != nil {
		return err
	}
	if field, err := r.Config.validate(); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	switch {
	case r.Revision < 0 || r.Token < 0 || r.Token > MaxToken || int64(r.Token) > int64(r.Revision):
		return fmt.Errorf("fencing token %d and revision %d cannot be", r.Token, r.Revision)
	case r.LockFor < 0 || r.LockFor > MaxLockDelay+MaxLeaseDuration+clockTolerance+s.Guard:
		return fmt.Errorf("a lock of %v cannot be", r.LockFor)
	case r.EndedAt.After(s.Now.Add(clockTolerance)):
		return errors.New("its last lease ended in the future")
	case r.LeaderID == "":
		return r.validateVacant()
	}
	return s.validateHeld()
}

func (r Record) validateVacant() error {
	switch {
	case r.KeyHash != (KeyHash{}) || r.LeaseDuration != 0 || r.Metadata != "" || !r.HeartbeatAt.IsZero():
		return errors.New("it has parts of a lease and no leader")
	case r.EndedAt.IsZero() && (r.Token > 0 || r.LockFor > 0):
		return errors.New("it had a leader, and the end of the last lease is missing")
	}
	return nil
}

func (s Snapshot) validateHeld() error {
	r := s.Record
	switch {
	case r.Deleted:
		return errors.New("it is deleted and has a leader")
	case r.Token == 0 || r.KeyHash == (KeyHash{}) || r.LeaseDuration == 0 || r.HeartbeatAt.IsZero():
		return errors.New("it has a leader and parts of its lease are missing")
	case r.HeartbeatAt.After(s.Now.Add(clockTolerance)):
		return errors.New("its last heartbeat lies in the future")
	}
	if err := r.LeaderID.Validate(); err != nil {
		return err
	}
	return validateLeaseDuration(r.LeaseDuration)
}
