package checker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/test/checker"
)

// wrong are ways to answer, or to act, that the rules do not allow.
func wrong() []struct {
	name    string
	breakIt func(*checker.Recording)
} {
	answer := func(n int, do func(*checker.Call, *leadership.Lease)) func(*checker.Recording) {
		return func(r *checker.Recording) { do(call(*r, n), call(*r, n).Answer) }
	}
	return []struct {
		name    string
		breakIt func(*checker.Recording)
	}{
		{"a token that is left out", func(r *checker.Recording) {
			r.History[8].Token = 5
			call(*r, 15).Answer.Token, call(*r, 16).Token, call(*r, 16).Answer.Token, call(*r, 17).Answer.Token = 5, 5, 5, 5
		}},
		{"a token that comes again", func(r *checker.Recording) {
			r.History[8].Token = 3
			call(*r, 15).Answer.Token, call(*r, 16).Token, call(*r, 16).Answer.Token, call(*r, 17).Answer.Token = 3, 3, 3, 3
		}},
		{"a grant that the history has not", func(r *checker.Recording) { r.History = r.History[:8] }},
		{"a grant that another made", func(r *checker.Recording) { r.History[8].LeaderID = "cy" }},
		{"a change of which the history has another sort", func(r *checker.Recording) { r.History[7].Type = leadership.EventConfigured }},
		{"a grant in the lock delay", func(r *checker.Recording) {
			r.History[2].At, r.History[3].At = begin.Add(23*s-1), begin.Add(23*s-1)
			a := call(*r, 5).Answer
			a.ReadAt, a.LastHeartbeat, a.LeaseExpiration = begin.Add(23*s-1), begin.Add(23*s-1), begin.Add(31*s-1)
			a = call(*r, 7).Answer
			a.LastHeartbeat, a.LeaseExpiration, a.ExpiresIn = begin.Add(23*s-1), begin.Add(31*s-1), 5*s-1
			a = call(*r, 6).Answer
			a.LastHeartbeat, a.LeaseExpiration, a.ExpiresIn = begin.Add(23*s-1), begin.Add(31*s-1), 6*s-1
		}},
		{"a lease that is longer than was granted", answer(5, func(_ *checker.Call, a *leadership.Lease) {
			a.LeaseExpiration, a.ExpiresIn = a.LeaseExpiration.Add(1), a.ExpiresIn+1
		})},
		{"more left of a lease than there is", answer(5, func(_ *checker.Call, a *leadership.Lease) { a.ExpiresIn++ })},
		{"a lock that is shorter than it is", answer(14, func(_ *checker.Call, a *leadership.Lease) { a.LockedFor -= ms })},
		{"a late renewal", answer(6, func(c *checker.Call, a *leadership.Lease) {
			c.Code, c.Answer = "", new(*a)
			c.Answer.LeaderID, c.Answer.Token, c.Answer.Revision = "ann", 1, 2
			c.Answer.LastHeartbeat, c.Answer.LeaseExpiration, c.Answer.ExpiresIn = a.ReadAt, a.ReadAt.Add(8*s), 8*s
		})},
		{"a renewal that is refused in time", answer(3, func(c *checker.Call, _ *leadership.Lease) { c.Code = leadership.LeaseLost })},
		{"a renewal with another key", answer(3, func(c *checker.Call, _ *leadership.Lease) { c.Key = keyOf("bob").Hash() })},
		{"a release with another key", answer(8, func(c *checker.Call, _ *leadership.Lease) { c.Key = keyOf("ann").Hash() })},
		{"a grant that is refused while it is free", func(r *checker.Recording) {
			c := call(*r, 5)
			c.Code = leadership.LeaseHeld
			c.Answer = new(*call(*r, 4).Answer)
			c.Answer.State, c.Answer.LeaderID, c.Answer.ReadAt, c.Answer.ExpiresIn = leadership.Vacant, "", begin.Add(24*s), 0
			c.Answer.LastHeartbeat, c.Answer.LeaseExpiration = time.Time{}, time.Time{}
		}},
		{"a stale read", func(r *checker.Recording) {
			old := *call(*r, 4).Answer
			old.ReadAt = begin.Add(26 * s)
			call(*r, 7).Answer = &old
		}},
		{"a read that was true before it was asked for", func(r *checker.Recording) { call(*r, 7).Answer = new(*call(*r, 4).Answer) }},
		{"a read with a clock that is behind", func(r *checker.Recording) {
			a := call(*r, 9).Answer
			a.ReadAt = begin.Add(28*s - 1)
		}},
		{"a read that is older than the store says, beside the grant", func(r *checker.Recording) {
			c := call(*r, 7)
			c.Asked, c.Answered = 23*s, 26*s
			a := *call(*r, 4).Answer
			a.State, a.LeaderID, a.ReadAt, a.ExpiresIn = leadership.Vacant, "", begin.Add(24*s+1), 0
			a.LastHeartbeat, a.LeaseExpiration = time.Time{}, time.Time{}
			c.Answer = &a
		}},
		{"two reads of the same, the later with an earlier time", answer(7, func(_ *checker.Call, a *leadership.Lease) {
			a.ReadAt, a.ExpiresIn = begin.Add(25*s-1), 7*s+1
		})},
		{"a token that is current after its end", answer(17, func(c *checker.Call, _ *leadership.Lease) { c.Code = "" })},
		{"a token that is stale while it is current", answer(16, func(c *checker.Call, _ *leadership.Lease) { c.Code = leadership.TokenStale })},
		{"a deletion under a leader without force", answer(11, func(c *checker.Call, _ *leadership.Lease) { c.Force = false })},
		{"another configuration", answer(7, func(_ *checker.Call, a *leadership.Lease) { a.Config.LockDelay = 0 })},
		{"metadata that no request had", answer(7, func(_ *checker.Call, a *leadership.Lease) { a.Metadata = `{"at":"sea"}` })},
		{"a condition that did not hold", answer(13, func(c *checker.Call, _ *leadership.Lease) { c.If = 3 })},
		{"an election that is not found", answer(7, func(c *checker.Call, _ *leadership.Lease) { c.Code, c.Answer = leadership.NotFound, nil })},
	}
}

func TestAnswersAgainstTheRulesAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range wrong() {
		wrongCase{c.name, linear, c.breakIt, kindsOf(checker.Illegal)}.run(t)
	}
}

// lose makes the reply to a call lost.
func lose(r *checker.Recording, n int) {
	c := call(*r, n)
	c.Code, c.Answer, c.Answered = leadership.OutcomeUnknown, nil, checker.Forever
}

func TestLostRepliesAreResolved(t *testing.T) {
	t.Parallel()
	for _, c := range []wrongCase{
		{"the configuration", linear, func(r *checker.Recording) { lose(r, 1) }, nil},
		{"the grant", linear, func(r *checker.Recording) { lose(r, 2) }, nil},
		{"the renewal, which others were shown", linear, func(r *checker.Recording) { lose(r, 3) }, nil},
		{"the renewal, which no answer showed", linear, func(r *checker.Recording) { lose(r, 3); lose(r, 4) }, nil},
		{"a renewal that was never made", linear, func(r *checker.Recording) { r.Calls = slices.Delete(r.Calls, 2, 3) }, kindsOf(checker.Illegal)},
		{"a renewal with another token", linear, func(r *checker.Recording) { lose(r, 3); call(*r, 3).Token = 2 }, kindsOf(checker.Illegal)},
		{"a renewal that was asked for after it was shown", linear, func(r *checker.Recording) { lose(r, 3); call(*r, 3).Asked = 16 * s }, kindsOf(checker.Illegal)},
		{"the release", linear, func(r *checker.Recording) { lose(r, 8) }, nil},
		{"a release that was not done", linear, func(r *checker.Recording) { lose(r, 9) }, nil},
		{"a grant that the history has not", linear, func(r *checker.Recording) { lose(r, 15); r.History = r.History[:8] }, kindsOf(checker.Illegal)},
		{"the deletion", linear, func(r *checker.Recording) { lose(r, 11) }, nil},
		{"all that was changed", linear, func(r *checker.Recording) {
			for _, n := range []int{1, 2, 3, 5, 8, 9, 10, 11, 13, 15} {
				lose(r, n)
			}
		}, nil},
		{"all", linear, func(r *checker.Recording) {
			for n := range r.Calls {
				lose(r, n+1)
			}
		}, nil},
	} {
		c.run(t)
	}
}

// The operator that made them was killed, and no answer shows what came of the first.
func TestAConfigurationThatNoAnswerShowsIsBelieved(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	once, again := leadership.Config{LeaseDuration: 8 * s}, leadership.Config{LeaseDuration: 8 * s, LockDelay: s}
	p.at(s, checker.Call{Verb: checker.Configure, Config: once})    // r1
	p.at(2*s, checker.Call{Verb: checker.Configure, Config: again}) // r2
	p.at(3*s, checker.Call{Verb: checker.Configure, Config: once})  // r3
	p.at(4*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})
	r := p.recording()
	without(&r, 2)
	if err := checker.Linear(r, 0).Err(); err != nil {
		t.Error(err)
	}
}

// A server went on for a candidate that waited, whose first lease had run out before it was told.
func TestALeaseThatACallWasGrantedAgainIsAsLongAsItAsked(t *testing.T) {
	again := func(lease time.Duration) func(*checker.Recording) {
		return func(r *checker.Recording) {
			lose(r, 2)
			call(*r, 2).Lease = lease
			without(r, 3)
			for i := range r.History {
				if r.History[i].RequestID == "r3" {
					r.History[i].RequestID = "r2"
				}
			}
		}
	}
	recorded := func(tb testing.TB) checker.Recording {
		p := newPlay(tb)
		p.at(s, checker.Call{Verb: checker.Configure, Config: leadership.Config{LeaseDuration: 8 * s}}) // r1
		p.at(2*s, checker.Call{Verb: checker.Acquire, Candidate: "ann", Lease: 4 * s})                  // r2
		p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann", Lease: 4 * s})                 // r3
		p.at(15*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})                               // r4
		return p.recording()
	}
	cases(t, recorded,
		wrongCase{"as long as it asked", linear, again(4 * s), nil},
		wrongCase{"shorter", linear, again(6 * s), kindsOf(checker.Illegal)},
	)
}

func TestChangedAnswersAreFound(t *testing.T) {
	t.Parallel()
	r := fourTerms(t)
	changes := map[string]func(*leadership.Lease){
		"token":       func(a *leadership.Lease) { a.Token++ },
		"revision":    func(a *leadership.Lease) { a.Revision++ },
		"no revision": func(a *leadership.Lease) { a.Revision-- },
		"leader":      func(a *leadership.Lease) { a.LeaderID += "x" },
		"end":         func(a *leadership.Lease) { a.LeaseExpiration = a.LeaseExpiration.Add(1) },
		"deleted":     func(a *leadership.Lease) { a.Deleted = !a.Deleted },
		"delay":       func(a *leadership.Lease) { a.Config.LockDelay++ },
		"lock":        func(a *leadership.Lease) { a.LockedFor += ms },
	}
	for name, change := range changes {
		for i := range r.Calls {
			if r.Calls[i].Answer == nil {
				continue
			}
			changed := r
			changed.Calls = slices.Clone(r.Calls)
			changed.Calls[i].Answer = new(*r.Calls[i].Answer)
			change(changed.Calls[i].Answer)
			if diff := cmp.Diff(kindsOf(checker.Illegal), kinds(checker.Linear(changed, 0))); diff != "" {
				t.Errorf("another %s in %v: %s", name, r.Calls[i], diff)
			}
		}
	}
}
