package faults

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"regent/leadership"
	"regent/test/checker"
	"regent/test/faults/record"
)

// Result has the figures of a run.
type Result struct {
	Operations int          // calls and readings that were answered
	Unknown    int          // calls whose answer was lost
	Changes    int          // revisions
	Leaders    int          // changes of leader: grants but for the first of each election
	Deliveries int          // events that consumers got
	Effects    int          // that leaders have finished
	InDoubt    int          // that leaders were told are in doubt
	Decisions  int          // that leaders have made
	Seats      int          // changes of leader at seats, which Leaders does not count
	Lowered    int          // terms at seats that were told to end, for there are fewer now
	Halted     int          // candidates that were refused in a halt, when all must have heard of it
	Faults     map[Kind]int // that were planned, and happened
	Late       int          // times at which the machine itself was late, or a store's time went back
}

// Violation is the error of a run that broke a promise.
type Violation struct {
	What []string // each a sentence
}

// Error returns all sentences, or the first ones.
func (v *Violation) Error() string {
	const enough = 20
	text := strings.Join(v.What[:min(len(v.What), enough)], "\n")
	return fmt.Sprintf("%d violations:\n%s", len(v.What), text)
}

// findings is the outcome of a run.
type findings struct {
	truth     truth
	recording checker.Recording
	verdict   checker.Findings
	failures  []string
	excused   error // too much was put down to the machine
	result    Result
}

const (
	// slack is how much the clock of a store on this machine may differ from ours during a lease.
	slack = 100 * time.Millisecond
	// cloudGuard is how long a cloud store waits after the end of a lease.
	cloudGuard = 50 * time.Millisecond
	// emulatorLag is how long after its own timestamp a commit may become visible: the emulators
	// stamp it before they carry it out, and on a busy machine 160 ms were seen. Firestore and
	// Spanner wait.
	emulatorLag = time.Second
)

// guard is that of the store.
func (p Plan) guard() time.Duration {
	if p.Store == File {
		return 0
	}
	return cloudGuard
}

// check runs all checkers. Only an emulator's time may go back by more than the guard; if it must
// have, that is one more excuse.
func (s *session) check(r checker.Recording) checker.Findings {
	all := checker.All(r, slack, s.plan.guard())
	for i, n := range all {
		if n.Err() == nil || s.plan.Store == File {
			continue
		}
		switch n.Name {
		case "Linear":
			all[i].Report = checker.LinearBack(r, s.plan.guard(), emulatorLag)
		case "SE":
			all[i].Report = checker.SE(r, emulatorLag)
		default:
			continue
		}
		s.excuses.Excuse("the store's time went back: %v", n.Err())
	}
	return all
}

// examine checks what was recorded against the store's truth.
func (s *session) examine(t truth) (f findings) {
	for _, w := range s.wrappers {
		for _, b := range w.beliefs() {
			s.notes.add(record.Line{Belief: &b})
		}
	}
	f.truth, f.recording, f.failures = t, s.notes.recording(t.History), s.notes.failures
	f.recording.Faults = slices.Concat(f.recording.Faults, s.lateRenewals(f.recording))
	f.verdict = s.check(f.recording)
	for i, n := range f.verdict {
		if s.otherBoot() {
			f.verdict[i].Violations = slices.DeleteFunc(n.Violations, func(v checker.Violation) bool {
				return n.Name == "Linear" || v.Kind == checker.Overdue || v.Kind == checker.Outlived // the limits of terms have moved on with them
			})
		}
	}
	f.result = resultOf(s.plan, f.recording)
	f.result.Late = s.excuses.Made() + s.renewals.Made()
	f.excused = cmp.Or(s.excuses.Err(), s.renewals.Err())
	return f
}

// otherBoot reports whether a file's leases counted as just renewed at some moment, which the order
// of calls does not show.
func (s *session) otherBoot() bool {
	return s.plan.Store == File && slices.ContainsFunc(s.plan.Faults, func(f Fault) bool { return f.Kind == OtherBoot })
}

// violation is nil if there is none.
func (f findings) violation() error {
	v := &Violation{What: slices.Clone(f.failures)}
	for _, n := range f.verdict {
		for _, one := range n.Violations {
			v.What = append(v.What, fmt.Sprintf("%s: %v", n.Name, one))
		}
	}
	if len(v.What) == 0 {
		return nil
	}
	return v
}

// valid returns an error that says why the run proves nothing, or nil.
func (f findings) valid(p Plan) error {
	seconds := p.contends().Seconds()
	least := int(seconds * p.leastRate())
	switch {
	case f.result.Operations < least:
		return fmt.Errorf("%w: %d operations in %.1f s, and %d are the least", ErrInvalid, f.result.Operations, seconds, least)
	case f.excused != nil:
		return fmt.Errorf("%w: %w", ErrInvalid, f.excused)
	case f.result.Effects == 0:
		return fmt.Errorf("%w: no leader has finished an effect", ErrInvalid)
	case f.result.Decisions == 0:
		return fmt.Errorf("%w: no leader has decided a proposal", ErrInvalid)
	case f.result.Leaders == 0:
		return fmt.Errorf("%w: the leader never changed", ErrInvalid)
	case f.result.Seats == 0, p.Store == File && (f.result.Lowered == 0 || f.result.Halted == 0): // an emulator may take too long until all have heard
		return fmt.Errorf("%w: of seats there were %d changes of leader, %d terms that ended for want of seats, and %d refusals in a halt", ErrInvalid, f.result.Seats, f.result.Lowered, f.result.Halted)
	}
	return nil
}

// leastRate is how many operations there must be a second.
func (p Plan) leastRate() float64 {
	if p.Store == File {
		return 20
	}
	return 10
}

func resultOf(p Plan, r checker.Recording) Result {
	result := Result{Changes: len(r.History), Operations: len(r.Readings), Faults: map[Kind]int{}}
	for _, c := range r.Calls {
		if c.Answered == checker.Forever {
			result.Unknown++
		} else {
			result.Operations++
		}
	}
	for _, c := range r.Consumers {
		result.Deliveries += len(c.Got)
	}
	for _, c := range r.Effects {
		switch {
		case c.State == leadership.EffectInDoubt:
			result.InDoubt++
		case c.State == leadership.EffectDone && c.Finish:
			result.Effects++
		}
	}
	for _, c := range r.Proposals {
		if c.Token > 0 && c.By == c.Token {
			result.Decisions++
		}
	}
	result.Lowered, result.Halted = seatsOf(r)
	led := map[leadership.Election]bool{}
	for _, e := range r.History {
		if e.Type == leadership.EventAcquired && led[e.Election] {
			if _, _, seat := e.Election.SeatOf(); seat {
				result.Seats++
			} else {
				result.Leaders++
			}
		}
		led[e.Election] = led[e.Election] || e.Type == leadership.EventAcquired
	}
	for _, f := range p.Faults {
		if slices.ContainsFunc(r.Faults, func(done checker.Fault) bool { return done.Name == f.what() }) {
			result.Faults[f.Kind]++
		}
	}
	return result
}

// seatsOf counts terms at seats that were lowered, and refusals in halts that are older than five
// seconds.
func seatsOf(r checker.Recording) (lowered, halted int) {
	type term struct {
		leadership.Election
		leadership.Token
	}
	seen := map[term]bool{}
	for _, c := range r.Calls {
		a := c.Answer
		switch {
		case a == nil:
		case a.EndsBecause == leadership.EndsSeats && !seen[term{a.Election, a.Token}]:
			seen[term{a.Election, a.Token}] = true
			lowered++
		case c.Verb == checker.Acquire && c.Because == leadership.ReasonHalted && slices.ContainsFunc(r.History, func(e leadership.Event) bool {
			old := a.ReadAt.Sub(e.At)
			return e.Type == leadership.EventHalted && old > 5*time.Second && old < 8*time.Second
		}):
			halted++
		}
	}
	return lowered, halted
}
