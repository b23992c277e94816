package checker_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/test/checker"
)

// quiet is ann's lease of 8 s, with a lock delay of 1 s, which runs out at 18 s, and bob's, who
// takes over at the given time.
func quiet(tb testing.TB, takeover time.Duration) checker.Recording {
	p := newPlay(tb)
	p.at(s, checker.Call{Verb: checker.Configure, Config: leadership.Config{LeaseDuration: 8 * s, LockDelay: s}})
	p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})
	p.at(takeover, checker.Call{Verb: checker.Acquire, Candidate: "bob"})
	p.at(takeover+s, checker.Call{Verb: checker.Release, Candidate: "bob", Token: 2})
	return p.recording()
}

func TestLeaderlessTimesAreFound(t *testing.T) {
	t.Parallel()
	bob := func(from, until time.Duration) checker.Willing {
		return checker.Willing{Who: "bob", Election: "planner", From: from, Until: until}
	}
	fault := func(from, until time.Duration) checker.Fault {
		return checker.Fault{Name: "cut", From: from, Until: until}
	}
	// ann's lease is over at 18.015 s by any clock, and then there is the lease, its delay and a
	// second, and the slack, to take over
	const last = 18*s + 15*ms + 10*s + 10*ms + 5*ms
	for _, c := range []struct {
		name     string
		takeover time.Duration
		willing  []checker.Willing
		faults   []checker.Fault
		want     []checker.Kind
	}{
		{"in time", last, []checker.Willing{bob(0, checker.Forever)}, nil, nil},
		{"late", last + 1, []checker.Willing{bob(11*s, checker.Forever)}, nil, kindsOf(checker.Leaderless)},
		{"late, and no candidate was willing", last + 1, nil, nil, nil},
		{"late, and he came late", last + 1, []checker.Willing{bob(20*s, checker.Forever)}, nil, nil},
		{"very late after he came", 40 * s, []checker.Willing{bob(20*s, checker.Forever)}, nil, kindsOf(checker.Leaderless)},
		{"late, and he went", 40 * s, []checker.Willing{bob(11*s, 25*s)}, nil, nil},
		{"in time after a fault", 29 * s, []checker.Willing{bob(11*s, checker.Forever)}, []checker.Fault{fault(12*s, 19*s)}, nil},
		{"late after a fault", 29*s + 16*ms, []checker.Willing{bob(11*s, checker.Forever)}, []checker.Fault{fault(12*s, 19*s)}, kindsOf(checker.Leaderless)},
		{"late, with a fault that stays", 40 * s, []checker.Willing{bob(11*s, checker.Forever)}, []checker.Fault{fault(12*s, checker.Forever)}, nil},
		{"before a fault that comes later", 40 * s, []checker.Willing{bob(11*s, checker.Forever)}, []checker.Fault{fault(35*s, 36*s)}, kindsOf(checker.Leaderless)},
		{"no leader at first, with a willing candidate", 28 * s, []checker.Willing{bob(0, 9*s)}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := quiet(t, c.takeover)
			for i := range c.willing { // he lets go by himself
				c.willing[i].Until = min(c.willing[i].Until, c.takeover)
			}
			r.Willing, r.Faults = c.willing, c.faults
			report := lv(r)
			if diff := cmp.Diff(c.want, kinds(report)); diff != "" {
				t.Errorf("violations (-want +got):\n%s%v", diff, report.Err())
			}
		})
	}
}

func TestNeedlessChangesAreFound(t *testing.T) {
	t.Parallel()
	ann := checker.Willing{Who: "ann", Election: "planner", From: 0, Until: checker.Forever}
	r := quiet(t, 20*s)
	for _, c := range []struct {
		name    string
		willing checker.Willing
		faults  []checker.Fault
		want    []checker.Kind
	}{
		{"she was willing all the time", ann, nil, kindsOf(checker.Needless)},
		{"she had gone", checker.Willing{Who: "ann", Election: "planner", Until: 12 * s}, nil, nil},
		{"she was cut off", ann, []checker.Fault{{Name: "cut", From: 13 * s, Until: 14 * s}}, nil},
		{"she had been cut off long before", ann, []checker.Fault{{Name: "cut", From: s, Until: 2 * s}}, kindsOf(checker.Needless)},
		{"he released", checker.Willing{Who: "bob", Election: "planner", Until: checker.Forever}, nil, kindsOf(checker.Needless)},
	} {
		r.Willing, r.Faults = []checker.Willing{c.willing}, c.faults
		if diff := cmp.Diff(c.want, kinds(lv(r))); diff != "" {
			t.Errorf("%s: (-want +got):\n%s%v", c.name, diff, lv(r).Err())
		}
	}
}

func TestPossibleRenewalExplainsALateTakeover(t *testing.T) {
	t.Parallel()
	r := quiet(t, 30*s)
	r.Willing = []checker.Willing{{Who: "bob", Election: "planner", Until: 30 * s}}
	renewal := checker.Call{Caller: "ann", Verb: checker.Renew, Election: "planner", Candidate: "ann", Token: 1, Code: leadership.OutcomeUnknown, Asked: 17 * s, Answered: 17 * s}
	r.Calls = append(r.Calls, renewal)
	if err := lv(r).Err(); err != nil {
		t.Errorf("a renewal whose reply was lost: %v", err)
	}
	r.Calls = r.Calls[:4]
	if diff := cmp.Diff(kindsOf(checker.Leaderless), kinds(lv(r))); diff != "" {
		t.Error(diff)
	}
}
