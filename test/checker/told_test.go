package checker_test

import (
	"testing"
	"time"

	"regent/leadership"
	"regent/test/checker"
)

func TestLeasesThatNeverWereAreFound(t *testing.T) {
	t.Parallel()
	// r4 is a refusal that shows ann's first lease, r7 a read of bob's.
	for _, c := range []wrongCase{
		{"a lease made up from an event", checker.Told, func(r *checker.Recording) {
			call(*r, 4).Answer = &leadership.Lease{
				Election: "planner", State: leadership.Held, LeaderID: "bob", Token: 2, Revision: 4, LeaseDuration: 8 * s,
			}
		}, kindsOf(checker.Incomplete)},
		{"a new revision with the lease before", checker.Told, func(r *checker.Recording) { call(*r, 4).Answer.Revision = 4 }, kindsOf(checker.Untrue)},
		{"a new token with the lease before", checker.Told, func(r *checker.Recording) {
			a := call(*r, 4).Answer
			a.LeaderID, a.Token, a.Revision = "bob", 2, 4
		}, kindsOf(checker.Untrue)},
		{"another leader", checker.Told, func(r *checker.Recording) { call(*r, 7).Answer.LeaderID = "cy" }, kindsOf(checker.Untrue)},
		{"a revision after the end of the lease", checker.Told, func(r *checker.Recording) { call(*r, 7).Answer.Revision = 5 }, kindsOf(checker.Untrue)},
		{"a revision that is to come", checker.Told, func(r *checker.Recording) { call(*r, 7).Answer.Revision = 10 }, kindsOf(checker.Phantom)},
		{"no start", checker.Told, func(r *checker.Recording) { call(*r, 7).Answer.AcquiredAt = time.Time{} }, kindsOf(checker.Incomplete)},
		{"no heartbeat", checker.Told, func(r *checker.Recording) { call(*r, 7).Answer.LastHeartbeat = time.Time{} }, kindsOf(checker.Incomplete)},
		{"no end", checker.Told, func(r *checker.Recording) { call(*r, 7).Answer.LeaseExpiration = time.Time{} }, kindsOf(checker.Incomplete)},
		{"another start", checker.Told, func(r *checker.Recording) {
			a := call(*r, 7).Answer
			a.AcquiredAt = a.AcquiredAt.Add(-ms)
		}, kindsOf(checker.Untrue)},
		{"another end", checker.Told, func(r *checker.Recording) {
			a := call(*r, 7).Answer
			a.LeaseExpiration = a.LeaseExpiration.Add(ms)
		}, kindsOf(checker.Untrue)},
		{"more left than there is", checker.Told, func(r *checker.Recording) { call(*r, 7).Answer.ExpiresIn += 2 * ms }, kindsOf(checker.Untrue)},
		{"a heartbeat of the lease before", checker.Told, func(r *checker.Recording) {
			a, before := call(*r, 7).Answer, call(*r, 3).Answer
			a.LastHeartbeat, a.LeaseExpiration, a.ExpiresIn = before.LastHeartbeat, before.LeaseExpiration, 0
		}, kindsOf(checker.Untrue)},
		{"a vacant election with a leader", checker.Told, func(r *checker.Recording) { call(*r, 9).Answer.LeaderID = "bob" }, kindsOf(checker.Untrue)},
		{"a reading with the lease before", checker.Told, func(r *checker.Recording) {
			shown := *call(*r, 4).Answer
			shown.Revision = 4
			r.Readings = append(r.Readings, checker.Reading{Reader: "eve", Election: "planner", Shown: &shown})
		}, kindsOf(checker.Untrue)},
	} {
		c.run(t)
	}
}

// returning is bob, who takes over from ann at 20 s without hearing of it, asks again, and is
// answered at the given time with that lease, or refused.
func returning(tb testing.TB, answered time.Duration, refused bool) checker.Recording {
	p := newPlay(tb)
	p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann", Lease: 8 * s})
	p.at(20*s, checker.Call{Verb: checker.Acquire, Candidate: "bob", Lease: 8 * s})
	p.at(21*s, checker.Call{Verb: checker.Get})
	if refused {
		p.at(answered, checker.Call{Verb: checker.Acquire, Candidate: "cy", Lease: 8 * s})
	} else {
		p.at(answered, checker.Call{Verb: checker.Acquire, Candidate: "bob", Lease: 8 * s})
	}
	r := p.recording()
	lost, again := call(r, 2), call(r, 4)
	lost.Answered, lost.Code, lost.Answer = checker.Forever, leadership.OutcomeUnknown, nil
	again.Candidate, again.Caller, again.Key = lost.Candidate, lost.Caller, lost.Key
	again.Asked = 22 * s
	return r
}

func TestLeadersThatWaitForTheirOwnLeaseAreFound(t *testing.T) {
	t.Parallel()
	pause := func(from, until time.Duration) func(*checker.Recording) {
		return func(r *checker.Recording) { r.Faults = []checker.Fault{{Name: "pause", From: from, Until: until}} }
	}
	nothing := func(*checker.Recording) {}
	for _, c := range []struct {
		name     string
		answered time.Duration
		refused  bool
		change   func(*checker.Recording)
		want     []checker.Kind
	}{
		{"answered in time", 22*s + 900*ms, false, nothing, nil},
		{"answered late", 24 * s, false, nothing, kindsOf(checker.Kept)},
		{"refused in time", 22*s + 900*ms, true, nothing, nil},
		{"refused late", 24 * s, true, nothing, kindsOf(checker.Kept)},
		{"late, for the server was stopped", 24 * s, false, pause(21*s, 24*s), nil},
		{"late after the server was stopped", 25 * s, false, pause(21*s, 23*s), kindsOf(checker.Kept)},
		{"late, by another connection", 24 * s, false, func(r *checker.Recording) { call(*r, 4).Caller = "bob:1" }, nil},
		{"late, with another key", 24 * s, true, func(r *checker.Recording) { call(*r, 4).Key = keyOf("cy").Hash() }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := returning(t, c.answered, c.refused)
			c.change(&r)
			if got := kinds(checker.Own(r)); len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
				t.Errorf("got %v, want %v", checker.Own(r).Violations, c.want)
			}
		})
	}
}
