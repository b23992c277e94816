package checker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/test/checker"
)

// kept is ann's lease of 8 s from 10 s on, which she renews at these times.
func kept(tb testing.TB, renewed ...time.Duration) *play {
	p := newPlay(tb)
	// r1
	p.at(s, checker.Call{Verb: checker.Configure, Config: leadership.Config{LeaseDuration: 8 * s}})
	// r2
	p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})
	for _, at := range renewed {
		p.at(at, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1}) // r3 and on
	}
	return p
}

// without is the recording without these calls.
func without(r *checker.Recording, n ...int) {
	for _, n := range n {
		lost := call(*r, n).Request
		r.Calls = slices.DeleteFunc(r.Calls, func(c checker.Call) bool { return c.Request == lost })
	}
}

func TestUnconfirmedHeartbeatIsAssumedOnlyWherePossible(t *testing.T) {
	t.Parallel()
	twice := func() *play { return kept(t, 16*s, 22*s, 28*s) } // until 24, 30 and 36 s
	turns := func() *play { return kept(t, 16*s, 22*s, 28*s, 35*s) }
	read := func(at ...time.Duration) *play {
		p := kept(t, 12*s)
		for _, at := range at {
			p.at(at, checker.Call{Verb: checker.Get}) // r4 and on
		}
		return p
	}
	lapsed := func() *play {
		p := kept(t, 16*s)
		p.at(19*s, checker.Call{Verb: checker.Get})                               // r4
		p.at(20*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1}) // r5
		return p
	}
	for _, c := range []struct {
		name    string
		play    *play
		breakIt func(*checker.Recording)
		want    []checker.Kind
	}{
		{"two in a row", twice(), func(r *checker.Recording) { lose(r, 3); lose(r, 4) }, nil},
		{"two in a row, of which one was asked for", twice(), func(r *checker.Recording) { lose(r, 3); without(r, 4) }, kindsOf(checker.Illegal)},
		{"now and then", turns(), func(r *checker.Recording) { lose(r, 3); lose(r, 5) }, nil},
		{"the same again", turns(), func(r *checker.Recording) { lose(r, 3); without(r, 5) }, kindsOf(checker.Illegal)},
		{"with another key", turns(), func(r *checker.Recording) {
			lose(r, 3)
			call(*r, 3).Key = keyOf("bob").Hash()
		}, kindsOf(checker.Illegal)},
		{"shown", read(13*s, 14*s), func(r *checker.Recording) { lose(r, 3) }, nil},
		{"shown, and not shown before, when it had been", read(13*s, 14*s), func(r *checker.Recording) {
			lose(r, 3)
			a := call(*r, 4).Answer
			a.LastHeartbeat, a.LeaseExpiration, a.ExpiresIn = begin.Add(10*s), begin.Add(18*s), 5*s
		}, kindsOf(checker.Illegal)},
		{"shown before it was", read(14 * s), func(r *checker.Recording) {
			lose(r, 3)
			a := call(*r, 4).Answer
			a.LastHeartbeat, a.LeaseExpiration, a.ExpiresIn = begin.Add(15*s), begin.Add(23*s), 9*s
		}, kindsOf(checker.Illegal)},
		{"before an unseen end", lapsed(), func(r *checker.Recording) { lose(r, 3); without(r, 4) }, nil},
		{"before an end that a caller saw", lapsed(), func(r *checker.Recording) {
			lose(r, 3)
			a := call(*r, 4).Answer
			a.State, a.LeaderID, a.ExpiresIn, a.LastHeartbeat, a.LeaseExpiration = leadership.Vacant, "", 0, time.Time{}, time.Time{}
		}, kindsOf(checker.Illegal)},
	} {
		r := c.play.recording()
		c.breakIt(&r)
		if diff := cmp.Diff(c.want, kinds(linear(r))); diff != "" {
			t.Errorf("%s: (-want +got):\n%s%v", c.name, diff, linear(r).Err())
		}
	}
}

func TestLateExtensionIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	p := kept(t)
	p.at(17*s, checker.Call{Verb: checker.Acquire, Candidate: "ann", Lease: 9 * s}) // r3: updated
	move := func(at time.Duration) checker.Recording {
		r := p.recording()
		r.Calls[2].Asked, r.Calls[2].Answered, r.History[2].At = at-5*ms, at+5*ms, begin.Add(at)
		a := *r.Calls[2].Answer
		a.LastHeartbeat, a.ReadAt, a.LeaseExpiration = begin.Add(at), begin.Add(at), begin.Add(at+9*s)
		r.Calls[2].Answer = &a
		return r
	}
	if err := checker.Linear(move(18*s-1), 50*ms).Err(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(kindsOf(checker.Illegal), kinds(checker.Linear(move(18*s), 50*ms))); diff != "" {
		t.Error(diff)
	}
}

func TestCommitMayBecomeVisibleAfterItsTimestamp(t *testing.T) {
	t.Parallel()
	p := newPlay(t)
	p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})         // r1
	p.at(15*s, checker.Call{Verb: checker.Get})                               // r2
	p.at(16*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1}) // r3
	r := p.recording()
	const lag = 160 * time.Millisecond
	read, renewal := call(r, 2), call(r, 3)
	read.Answered, read.Answer.ReadAt = 16*s+lag, begin.Add(16*s+lag)
	read.Answer.ExpiresIn -= s + lag
	renewal.Answered = 16*s + lag
	if diff := cmp.Diff(kindsOf(checker.Illegal), kinds(checker.Linear(r, 50*ms))); diff != "" {
		t.Error(diff)
	}
	if err := checker.LinearBack(r, 50*ms, s).Err(); err != nil {
		t.Error(err)
	}
	read.Asked = renewal.Answered + 1 // a read after the renewal's reply must show it
	read.Answered = read.Asked + 1
	if diff := cmp.Diff(kindsOf(checker.Illegal), kinds(checker.LinearBack(r, 50*ms, s))); diff != "" {
		t.Error(diff)
	}
}

// ann's renewal was lost with its reply, so her lock delay is known from an answer alone.
func TestLockThatAnAnswerRoundsUpMayEndEarlier(t *testing.T) {
	t.Parallel()
	const some = time.Millisecond / 2
	p := newPlay(t)
	p.at(s, checker.Call{Verb: checker.Configure, Config: leadership.Config{LeaseDuration: 8 * s, LockDelay: s}}) // r1
	p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})                                             // r2
	p.at(16*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})                                     // r3: until 24 s
	p.at(24*s+100*ms, checker.Call{Verb: checker.Release, Candidate: "ann", Token: 1})                            // r4: a lock until 25 s
	p.at(24*s+200*ms+some, checker.Call{Verb: checker.Get})                                                       // r5
	p.at(25*s+some/2, checker.Call{Verb: checker.Acquire, Candidate: "bob"})                                      // r6
	r := p.recording()
	lose(&r, 3)
	a := call(r, 5).Answer
	a.LockedFor = (a.LockedFor + ms - 1).Truncate(ms)
	if err := checker.Linear(r, 0).Err(); err != nil {
		t.Error(err)
	}
	a.LockedFor += ms
	if diff := cmp.Diff(kindsOf(checker.Illegal), kinds(checker.Linear(r, 0))); diff != "" {
		t.Errorf("a lock that is shown longer than it is: %s", diff)
	}
}
