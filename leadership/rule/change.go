package rule

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"time"
	"unicode/utf8"

	"regent/leadership"
	"regent/leadership/internal/form"
)

// Change is the change of a record that a rule wants written. It is one of:
//
//	nothing            the zero Change
//	events             the record changes in any way that the events describe
//	a heartbeat        the lease starts anew, and nothing else changes but EndsBy and Standing
//	both               as at a grant
//	a quiet change     Policy or Standing change, and nothing else
//
// A store writes the whole record in each of them.
type Change struct {
	Record Record
	// Events are the events of the change, in order, with their revisions; Record.Revision is that
	// of the last.
	Events []leadership.Event
	// Heartbeat says that the lease starts, or starts anew, when the change commits: the store sets
	// Record.HeartbeatAt and, at a grant, AcquiredAt to the instant of the commit. Without it the
	// store keeps both as they are.
	Heartbeat bool
	// Quiet says that Policy or Standing are written without an event or a heartbeat.
	Quiet bool
	// Before is the end of the lease that a heartbeat renews; zero at a grant. A heartbeat that is
	// committed no earlier does not count: it leaves the end of the lease where it was (StartOf),
	// and the caller of the store records that end with Lapse and answers LeaseLost.
	Before time.Time
}

// Empty reports whether there is nothing to write.
func (c *Change) Empty() bool { return len(c.Events) == 0 && !c.Heartbeat && !c.Quiet }

// Committed returns the record once the change was committed at the given instant.
func (c *Change) Committed(at time.Time) Record {
	r := c.Record
	if c.Heartbeat {
		r.HeartbeatAt = StartOf(at, c.Before, r.LeaseDuration)
		if c.Before.IsZero() {
			r.AcquiredAt = r.HeartbeatAt
		}
	}
	return r
}

// Prolongs returns the end that a lease had before the change, if the change extends that lease
// without a renewal; zero if it does not.
func (c *Change) Prolongs(was *Record) time.Time {
	r := &c.Record
	goesOn := was.LeaderID != "" && r.LeaderID == was.LeaderID && r.KeyHash == was.KeyHash && (r.Token == was.Token || r.GoesOnFrom(was.Token))
	if !goesOn || !c.Before.IsZero() || !r.LeaseEnd().After(was.LeaseEnd()) {
		return time.Time{}
	}
	return was.LeaseEnd()
}

// Decide runs decide on the snapshot that a store has read. It returns the change that the store
// must write, with Record.Needs set, and the record's encoded policy and standing. It returns an
// error of decide unchanged, and an error for a change that Change does not allow: the store must
// then write nothing. kept is the encoded policy and standing of s.Record, or zero if they are not
// at hand: most grants do not change them and need not encode them again.
func (c Codec) Decide(s Snapshot, kept Carried, decide func(Snapshot) (Change, error)) (ch Change, carried Carried, err error) {
	ch, err = decide(s)
	if err != nil || ch.Empty() {
		return Change{}, Carried{}, err
	}
	if err := ch.check(&s); err != nil {
		return Change{}, Carried{}, fmt.Errorf("leadership: change of election %q: %w", s.Record.Election, err)
	}
	if r := &ch.Record; kept.Needs > 0 && r.Standing == s.Record.Standing && r.Policy == s.Record.Policy {
		r.Needs = kept.Needs
		return ch, kept, nil
	}
	if carried, err = c.Encode(&ch.Record); err != nil {
		return Change{}, Carried{}, err
	}
	return ch, carried, nil
}

// check returns an error unless the change is one that a rule may make on s.
func (c *Change) check(s *Snapshot) error {
	before, after := &s.Record, &c.Record
	switch {
	case after.Election != before.Election:
		return fmt.Errorf("it is for %q", after.Election)
	case after.Token < before.Token:
		return fmt.Errorf("fencing token %d follows %d", after.Token, before.Token)
	case c.Quiet && (c.Heartbeat || len(c.Events) > 0):
		return errors.New("it is quiet, and has events or a heartbeat")
	case !c.Heartbeat && !c.Before.IsZero():
		return errors.New("it has to be committed before an instant, and has no heartbeat")
	}
	return cmp.Or(c.checkHeartbeat(before), c.checkEvents(before), c.checkPromise(before), c.checkSuccessor(s),
		VerifyAlone(Snapshot{Record: *after, Now: s.Now, Guard: s.Guard}))
}

// checkHeartbeat checks the start of the lease and, without events, that nothing else has changed.
func (c *Change) checkHeartbeat(before *Record) error {
	after := c.Record
	granted := after.Token > before.Token
	switch {
	case c.Heartbeat && after.LeaderID == "":
		return errors.New("it is a heartbeat without a leader")
	case c.Heartbeat && granted != c.Before.IsZero(), c.Heartbeat && !granted && !c.Before.Equal(before.LeaseEnd()):
		return errors.New("it is a heartbeat that does not have to be committed before the end of the lease")
	case !c.Heartbeat && after.LeaderID != "" && (granted || !after.HeartbeatAt.Equal(before.HeartbeatAt)):
		return errors.New("the lease starts anew, and there is no heartbeat")
	case len(c.Events) > 0:
		return nil
	}
	after.Standing, after.Needs = before.Standing, before.Needs
	if c.Heartbeat {
		after.HeartbeatAt, after.EndsBy, after.EndsBecause = before.HeartbeatAt, before.EndsBy, before.EndsBecause
	} else {
		after.Policy = before.Policy
	}
	if after != *before {
		return errors.New("it changes more than it may without an event")
	}
	return nil
}

// checkPromise checks that a continuing lease ends no earlier than its leader was told. (A
// heartbeat starts when it is committed, perhaps by a clock that is ahead of the one that decided.)
func (c *Change) checkPromise(before *Record) error {
	after := c.Record
	if before.LeaderID == "" || after.LeaderID != before.LeaderID || after.KeyHash != before.KeyHash {
		return nil
	}
	if after.Yielded() && !before.Yielded() { // the leader has given the promise up
		return nil
	}
	if after.HeartbeatAt.Before(before.HeartbeatAt) {
		after.HeartbeatAt = before.HeartbeatAt
	}
	if end, promised := after.LeaseEnd(), before.LeaseEnd(); end.Before(promised) {
		return fmt.Errorf("the lease ends at %s, and its leader was told %s", stamp(end), stamp(promised))
	}
	return nil
}

// checkSuccessor checks that a live lease passes only to the successor that its leader has yielded
// to, and that no yield is taken back.
func (c *Change) checkSuccessor(s *Snapshot) error {
	before, after := &s.Record, &c.Record
	same := after.LeaderID == before.LeaderID && after.KeyHash == before.KeyHash
	switch to := before.Standing.Succession; {
	case !s.Live() || after.LeaderID == "":
		return nil
	case !same && (!before.Yielded() || after.LeaderID != to.Ready || after.KeyHash != to.Key):
		return fmt.Errorf("%q is granted the lease of %q, which has not yielded to it", after.LeaderID, before.LeaderID)
	case same && before.Yielded() && (!after.Yielded() || after.Token > before.Token):
		return fmt.Errorf("%q has yielded, and leads again", before.LeaderID)
	}
	return nil
}

// checkEvents checks that the events have the next revisions, and that the last one has the
// record's.
func (c *Change) checkEvents(before *Record) error {
	last := before.Revision
	for i, e := range c.Events {
		if e.Election != before.Election || e.Revision <= last || i > 0 && e.Revision != last+1 {
			return fmt.Errorf("event %d of %q follows revision %d", e.Revision, e.Election, last)
		}
		if err := validateEvent(e); err != nil {
			return fmt.Errorf("event %d: %w", e.Revision, err)
		}
		last = e.Revision
	}
	if n := len(c.Events); c.Record.Revision != last || n > 0 && c.Events[n-1].Token != c.Record.Token {
		return fmt.Errorf("its last event does not agree with revision %d and fencing token %d", c.Record.Revision, c.Record.Token)
	}
	return nil
}

// validateEvent returns an error if the event's type, reason or detail is malformed.
func validateEvent(e leadership.Event) error {
	switch {
	case e.Type == "":
		return errors.New("it has no type")
	case len(e.Reason) > leadership.MaxReasonBytes || !utf8.ValidString(e.Reason):
		return fmt.Errorf("its reason is not UTF-8 of at most %d bytes", leadership.MaxReasonBytes)
	}
	if err := validateObject(e.Detail, leadership.MaxDetailBytes); err != nil {
		return fmt.Errorf("its detail: %w", err)
	}
	return nil
}

// BecausePreempt is Detail.Because of a hand-over to a better candidate.
const BecausePreempt = "preempt"

// detailText returns the detail as it is stored: "" if it is zero.
func detailText(d leadership.Detail) string {
	if reflect.ValueOf(&d).Elem().IsZero() {
		return ""
	}
	text, _ := form.JSON(d) // it always has a JSON form
	return string(text)
}

// explain sets the reason and the detail of the last event.
func (c *Change) explain(why string, d leadership.Detail) {
	e := &c.Events[len(c.Events)-1]
	e.Reason, e.Detail = why, detailText(d)
}
