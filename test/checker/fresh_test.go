package checker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/test/checker"
)

// world is three terms of ann: the change to revision n was asked for at 10n seconds and answered a
// second later. The first lease, of 8 s, was renewed once, at 14 s.
func world(readings ...checker.Reading) checker.Recording {
	r := checker.Recording{History: history("planner", 3), Readings: readings}
	for _, c := range []checker.Call{
		{Verb: checker.Acquire, Request: "r1", Asked: 10 * s, Answered: 11 * s},
		{Verb: checker.Renew, Asked: 14 * s, Answered: 15 * s},
	} {
		c.Election, c.Candidate, c.Token = "planner", "ann", 1
		c.Answer = &leadership.Lease{Election: "planner", Revision: 1, Token: 1, LeaseDuration: 8 * s, LastHeartbeat: begin, LeaseExpiration: begin.Add(8 * s)}
		r.Calls = append(r.Calls, c)
	}
	for i, e := range r.History {
		at, id := 10*s*time.Duration(e.Revision), fmt.Sprint("change-", e.Revision)
		r.History[i].RequestID = id
		made := &leadership.Lease{Election: "planner", Revision: e.Revision}
		r.Calls = append(r.Calls, checker.Call{Election: "planner", Request: id, Asked: at, Answered: at + s, Answer: made})
	}
	return r
}

// shown is a reading as it should be: of revision n, asked for at that time and answered half a
// second later.
func shown(n leadership.Revision, asked time.Duration) checker.Reading {
	x := checker.Reading{Reader: "bob", Election: "planner", Revision: n, State: leadership.Vacant, Token: leadership.Token(n+1) / 2, Asked: asked, Answered: asked + s/2, Bound: 5 * s}
	if n%2 == 1 {
		x.State, x.Leader = leadership.Held, "ann"
	}
	return x
}

func with(x checker.Reading, do func(*checker.Reading)) checker.Reading { do(&x); return x }

func aged(x checker.Reading, age time.Duration) checker.Reading {
	return with(x, func(x *checker.Reading) { x.Age = age })
}

func strong(x checker.Reading) checker.Reading {
	return with(x, func(x *checker.Reading) { x.Strong, x.Bound = true, 0 })
}

func lapsed(x checker.Reading) checker.Reading {
	return with(x, func(x *checker.Reading) { x.State, x.Leader = leadership.Vacant, "" })
}

func TestWrongReadsAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		readings []checker.Reading
		want     []checker.Kind
	}{
		{"the newest", []checker.Reading{shown(2, 25*s)}, nil},
		{"the newest, from the store", []checker.Reading{strong(shown(2, 25*s))}, nil},
		{"the last", []checker.Reading{shown(6, 100*s)}, nil},
		{"while it is made", []checker.Reading{shown(3, 29*s+s/2)}, nil},
		{"while the next is made", []checker.Reading{shown(2, 31*s)}, nil},
		{"before it is asked for", []checker.Reading{shown(3, 29*s)}, []checker.Kind{checker.Early}},
		{"after the next is done", []checker.Reading{shown(2, 32*s)}, []checker.Kind{checker.Stale}},
		{"after the next is done, within its age", []checker.Reading{aged(shown(2, 32*s), s)}, nil},
		{"after the next is done, beyond its age", []checker.Reading{aged(shown(2, 33*s), s)}, []checker.Kind{checker.Stale}},
		{"after the next is done, from the store", []checker.Reading{strong(shown(2, 32*s))}, []checker.Kind{checker.Stale}},
		{"within an age that is beyond its bound", []checker.Reading{aged(shown(2, 37*s), 6*s)}, []checker.Kind{checker.Unbounded, checker.Stale}},
		{"of an age that is its bound, rounded up", []checker.Reading{with(shown(2, 33*s), func(x *checker.Reading) { x.Age, x.Bound = 3*s, 5*s/2 })}, nil},
		{"without a bound", []checker.Reading{with(shown(2, 25*s), func(x *checker.Reading) { x.Bound = 0 })}, []checker.Kind{checker.Unbounded}},
		{"from the store, with an age", []checker.Reading{aged(strong(shown(2, 25*s)), s)}, []checker.Kind{checker.Unbounded}},
		{"of another token", []checker.Reading{with(shown(3, 35*s), func(x *checker.Reading) { x.Token-- })}, []checker.Kind{checker.Untrue}},
		{"of another leader", []checker.Reading{with(shown(3, 35*s), func(x *checker.Reading) { x.Leader = "cy" })}, []checker.Kind{checker.Untrue}},
		{"held, without a leader", []checker.Reading{with(shown(3, 35*s), func(x *checker.Reading) { x.Leader = "" })}, []checker.Kind{checker.Untrue}},
		{"vacant, with a leader", []checker.Reading{with(shown(3, 35*s), func(x *checker.Reading) { x.State = leadership.Vacant })}, []checker.Kind{checker.Untrue}},
		{"held after a release", []checker.Reading{with(shown(2, 25*s), func(x *checker.Reading) { x.State, x.Leader = leadership.Held, "ann" })}, []checker.Kind{checker.Untrue}},
		{"held, without a leader, when there was none", []checker.Reading{with(shown(2, 25*s), func(x *checker.Reading) { x.State = leadership.Held })}, []checker.Kind{checker.Untrue}},
		{"of a revision that there is not", []checker.Reading{shown(7, 75*s)}, []checker.Kind{checker.Phantom}},
		{"of no revision", []checker.Reading{shown(0, 5*s)}, []checker.Kind{checker.Phantom}},
		{"of an election that there is not", []checker.Reading{with(shown(2, 25*s), func(x *checker.Reading) { x.Election = "scribe" })}, []checker.Kind{checker.Phantom}},
		{"less than its reader knew", []checker.Reading{with(shown(2, 25*s), func(x *checker.Reading) { x.Known = 3 })}, []checker.Kind{checker.Behind}},
		{"what its reader knew", []checker.Reading{with(shown(2, 25*s), func(x *checker.Reading) { x.Known = 2 })}, nil},

		{"one after the other", []checker.Reading{shown(2, 25*s), shown(3, 35*s)}, nil},
		{"one before the other", []checker.Reading{shown(3, 30*s), aged(shown(2, 31*s), s)}, []checker.Kind{checker.Backwards}},
		{"one before the other, for two readers", []checker.Reading{shown(3, 30*s), with(aged(shown(2, 31*s), 2*s), func(x *checker.Reading) { x.Reader = "cy" })}, nil},
		{"one before the other, at the same time", []checker.Reading{with(shown(3, 30*s), func(x *checker.Reading) { x.Answered = 32 * s }), aged(shown(2, 31*s), s)}, nil},
		{"a change seen early by a reader is no news to the store", []checker.Reading{shown(3, 30*s), strong(with(shown(2, 30*s+6*s/10), func(x *checker.Reading) { x.Reader = "cy" }))}, []checker.Kind{checker.Stale}},

		{"a lease that was renewed", []checker.Reading{shown(1, 20*s)}, nil},
		{"a lease that was not renewed again", []checker.Reading{shown(1, 23*s)}, []checker.Kind{checker.Stale, checker.Overdue}},
		{"a lease that was not renewed again, within its age", []checker.Reading{aged(shown(1, 23*s), 2*s)}, nil},
		{"a lease over when it must be", []checker.Reading{lapsed(shown(1, 22*s))}, []checker.Kind{checker.Stale}},
		{"a lease over when it may be", []checker.Reading{aged(lapsed(shown(1, 22*s)), s)}, nil},
		{"a lease over too soon", []checker.Reading{lapsed(shown(1, 20*s))}, []checker.Kind{checker.Overdue}},
		{"a lease over as before it was renewed", []checker.Reading{aged(lapsed(shown(1, 18*s)), 4*s)}, nil},
		{"a lease of which nothing is known", []checker.Reading{lapsed(shown(3, 35*s))}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			report := checker.BS(world(c.readings...), 0)
			if diff := cmp.Diff(c.want, kinds(report)); diff != "" {
				t.Errorf("violations (-want +got):\n%s%v", diff, report.Err())
			}
		})
	}
}

func TestLostAnswerProvesNothing(t *testing.T) {
	t.Parallel()
	lost := func(x checker.Reading, more ...checker.Reading) checker.Recording {
		r := world(append(more, x)...)
		for _, n := range []int{1, 2 + 2} { // the renewal, and revision 3
			r.Calls[n].Answered, r.Calls[n].Code, r.Calls[n].Answer = checker.Forever, leadership.OutcomeUnknown, nil
		}
		return r
	}
	if report := checker.BS(lost(shown(2, 40*s)), 0); report.Err() != nil {
		t.Errorf("revision 3 may have been committed as late as revision 4: %v", report.Err())
	}
	if got := kinds(checker.BS(lost(shown(2, 42*s)), 0)); !slices.Contains(got, checker.Stale) {
		t.Errorf("revision 3 was committed before revision 4: %v", got)
	}
	other := with(shown(3, 33*s), func(x *checker.Reading) { x.Reader = "cy" })
	if got := kinds(checker.BS(lost(shown(2, 34*s), other), 0)); !slices.Contains(got, checker.Stale) {
		t.Errorf("revision 3 was committed before a reader saw it: %v", got)
	}
	if got := kinds(checker.BS(lost(shown(1, 23*s)), 0)); slices.Contains(got, checker.Overdue) {
		t.Errorf("a renewal that was not answered may come at any time: %v", got)
	}
}

func TestUnrecordedChangeCameAfterItsPredecessors(t *testing.T) {
	t.Parallel()
	r := world(shown(4, 25*s))
	r.Calls = r.Calls[:2+3]
	if got := kinds(checker.BS(r, 0)); !slices.Contains(got, checker.Early) {
		t.Errorf("revision 4 was shown before the first request for revision 3: %v", got)
	}
}

func TestReaderMaySeeMoreOfOneElection(t *testing.T) {
	t.Parallel()
	other := with(shown(1, 36*s), func(x *checker.Reading) { x.Election = "scribe" })
	r := world(shown(3, 35*s), other)
	r.History = append(r.History, history("scribe", 1)[0])
	if err := checker.BS(r, 0).Err(); err != nil {
		t.Error(err)
	}
}

func TestSlackExtendsTheEndOfALease(t *testing.T) {
	t.Parallel()
	late, soon := world(aged(shown(1, 25*s), s)), world(lapsed(shown(1, 20*s)))
	if got := kinds(checker.BS(late, 0)); !slices.Contains(got, checker.Overdue) {
		t.Fatalf("nothing to give slack to: %v", got)
	}
	if got := kinds(checker.BS(late, 2*s)); slices.Contains(got, checker.Overdue) {
		t.Errorf("too late: %v", got)
	}
	if got := kinds(checker.BS(soon, 3*s)); slices.Contains(got, checker.Overdue) {
		t.Errorf("too soon: %v", got)
	}
}

func TestALeaseWhoseLimitALaterChangeLiftsMayLastLonger(t *testing.T) {
	t.Parallel()
	for revision, want := range map[leadership.Revision]int{1: 1, 2: 0} {
		x := shown(1, 21*s)
		x.Revision = revision
		r := world(x)
		r.History[1].Type, r.History[1].LeaderID, r.History[1].PreviousLeaderID, r.History[1].Token = leadership.EventConfigured, "ann", "", 1
		r.Calls = r.Calls[:1]
		r.Calls[0].Answer.LeaseDuration, r.Calls[0].Answer.LeaseExpiration = 15*s, begin.Add(5*s)
		found := slices.DeleteFunc(kinds(checker.BS(r, 0)), func(k checker.Kind) bool { return k != checker.Overdue })
		if len(found) != want {
			t.Errorf("at revision %d: %v, want %d", revision, checker.BS(r, 0).Violations, want)
		}
	}
}
