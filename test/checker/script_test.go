package checker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/leadership/service"
	"regent/store/memory"
	"regent/test/checker"
)

// play makes the calls of a script, each at its time, and records what came of it. The n-th call is
// the request rn.
type play struct {
	tb       testing.TB
	now      time.Duration
	service  *service.Service
	recorded checker.Recording
	calls    int
}

func newPlay(tb testing.TB) *play {
	p := &play{tb: tb}
	p.service = service.New(memory.New(memory.Config{Now: func() time.Time { return begin.Add(p.now) }}))
	return p
}

// keyOf is the key of a candidate that never has another.
func keyOf(who leadership.CandidateID) (k leadership.Key) {
	copy(k[:], who)
	return k
}

const (
	ms = time.Millisecond
	s  = time.Second
)

// configured is an election that an operator has configured, without a recorded call.
func (p *play) configured(e leadership.Election) {
	p.tb.Helper()
	if _, err := p.service.Do(p.tb.Context(), leadership.Configure{Election: e}); err != nil {
		p.tb.Fatal(err)
	}
}

// at makes a call that is asked for 5 ms before, and answered 5 ms after.
func (p *play) at(now time.Duration, c checker.Call) {
	p.tb.Helper()
	p.as(now, c.Candidate, c)
}

// as is at, by a candidate that has the key of another one.
func (p *play) as(now time.Duration, key leadership.CandidateID, c checker.Call) {
	p.tb.Helper()
	p.calls++
	p.now = now
	c.Caller, c.Request, c.Asked, c.Answered = string(c.Candidate), fmt.Sprint("r", p.calls), now-5*ms, now+5*ms
	if c.Election == "" {
		c.Election = "planner"
	}
	if c.Candidate != "" {
		c.Key = keyOf(key).Hash()
	}
	if c = p.do(keyOf(key), c); c.Order.Kind.Halts() {
		c.Order, c.Election = c.Order.In(c.Election), c.Order.Record()
	}
	if c.Verb == checker.Delegate && c.Code == "" {
		c.Answer = nil // it is the child's
	}
	p.recorded.Calls = append(p.recorded.Calls, c)
}

// do makes the call and fills in what came of it.
func (p *play) do(key leadership.Key, call checker.Call) checker.Call {
	ctx := leadership.WithRequestID(p.tb.Context(), call.Request)
	lease, err := p.call(ctx, key, call)
	refusal, refused := errors.AsType[*leadership.Error](err)
	switch {
	case err == nil:
		call.Answer = &lease
	case refused:
		call.Code, call.Answer, call.Because, call.Again = refusal.Code, refusal.Lease, refusal.Reason, refusal.RetryAfter
	default:
		p.tb.Fatal(err)
	}
	return call
}

func (p *play) call(ctx context.Context, key leadership.Key, call checker.Call) (leadership.Lease, error) {
	named := leadership.LeaseRequest{Election: call.Election, CandidateID: call.Candidate, Key: key, Token: call.Token}
	switch call.Verb {
	case checker.Acquire:
		g, err := p.service.Acquire(ctx, leadership.AcquireRequest{
			Election: call.Election, CandidateID: call.Candidate, Key: &key, LeaseDuration: call.Lease, Metadata: []byte(call.Metadata), Candidacy: call.Candidacy, Via: call.Via,
		})
		return g.Lease, err
	case checker.Renew:
		named.Report = []byte(call.Report)
		return p.service.Renew(ctx, named)
	case checker.Order:
		return p.service.Do(ctx, call.Order.In(call.Election))
	case checker.Judge:
		return p.service.Do(ctx, leadership.Judge{Election: call.Election, Token: call.Token, Verdict: call.Verdict, Evidence: call.Reason, Actor: call.Actor})
	case checker.StepDown:
		return p.service.Do(ctx, leadership.StepDown{LeaseRequest: named, Reason: call.Reason, For: call.For})
	case checker.RequestApproval:
		return p.service.Do(ctx, leadership.RequestApproval{LeaseRequest: named, Note: call.Reason})
	case checker.Release:
		return p.service.Do(ctx, leadership.Release{LeaseRequest: named})
	case checker.Check:
		return p.service.CheckToken(ctx, leadership.TokenCheck{Election: call.Election, Token: call.Token, Write: call.Write})
	case checker.HandOver:
		return p.service.Do(ctx, leadership.HandOver{LeaseRequest: named, To: call.To, Within: call.Within, Reason: call.Reason})
	case checker.Ready:
		return p.service.Do(ctx, leadership.SayReady{LeaseRequest: leadership.LeaseRequest{Election: call.Election, CandidateID: call.Candidate, Key: key, Token: call.Token}})
	case checker.Serving:
		return p.service.Do(ctx, leadership.SayServing{LeaseRequest: named})
	case checker.Delegate:
		parent := string(call.Election) + "."
		return p.service.Delegate(ctx, leadership.DelegateRequest{LeaseRequest: named, Child: strings.TrimPrefix(string(call.Child), parent), Limits: call.Limits})
	case checker.Yield:
		return p.service.Do(ctx, leadership.Yield{LeaseRequest: named})
	case checker.Get:
		return p.service.Get(ctx, call.Election)
	case checker.Configure:
		return p.service.Do(ctx, leadership.Configure{
			Election: call.Election, Config: call.Config, IfRevision: call.If,
		})
	}
	if call.Verb == checker.Unlock {
		return p.service.Do(ctx, leadership.Unlock{
			Election: call.Election, Reason: "it hangs", Actor: "olga", Acknowledge: call.Acknowledge,
		})
	}
	return p.service.Do(ctx, leadership.Delete{Election: call.Election, Force: call.Force})
}

func (p *play) recording() checker.Recording {
	r := p.recorded
	r.Calls = slices.Clone(r.Calls)
	seen := make(map[leadership.Election]bool)
	for _, c := range r.Calls {
		of := c.Election
		if c.Answer != nil { // it may be a seat of it
			of = c.Answer.Election
		}
		if seen[of] {
			continue
		}
		seen[of] = true
		events, err := p.service.Events(p.tb.Context(), leadership.EventsRequest{Election: of, Limit: leadership.MaxPageSize})
		if err != nil && !errors.Is(err, leadership.NotFound) {
			p.tb.Fatal(err)
		}
		r.History = append(r.History, events...)
	}
	return r
}

// fourTerms is four terms: ann's runs out, bob releases his, an operator ends cy's by force, and
// ann leads again.
func fourTerms(tb testing.TB) checker.Recording {
	p := newPlay(tb)
	config := leadership.Config{LeaseDuration: 8 * s, LockDelay: s}
	p.at(s, checker.Call{Verb: checker.Configure, Config: config}) // r1: revision 1
	// r2: revision 2, token 1, until 18 s
	p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})
	p.at(14*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1}) // r3: until 22 s
	p.at(15*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})         // r4: refused
	// r5: revisions 3 and 4, token 2
	p.at(24*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})
	p.at(25*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})   // r6: refused
	p.at(26*s, checker.Call{Verb: checker.Get})                                 // r7
	p.at(28*s, checker.Call{Verb: checker.Release, Candidate: "bob", Token: 2}) // r8: revision 5
	p.at(29*s, checker.Call{Verb: checker.Release, Candidate: "bob", Token: 2}) // r9
	// r10: revision 6, token 3, until 38 s
	p.at(30*s, checker.Call{Verb: checker.Acquire, Candidate: "cy"})
	p.at(31*s, checker.Call{Verb: checker.Delete, Force: true})       // r11: revision 7
	p.at(32*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"}) // r12: refused
	p.at(33*s, checker.Call{Verb: checker.Configure, Config: config}) // r13: revision 8
	// r14: refused, for a lock delay runs until 39 s
	p.at(35*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})
	// r15: revision 9, token 4, until 48 s
	p.at(40*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})
	p.at(41*s, checker.Call{Verb: checker.Check, Candidate: "ann", Token: 4}) // r16
	p.at(42*s, checker.Call{Verb: checker.Check, Candidate: "bob", Token: 2}) // r17: stale
	r := p.recording()
	r.Beliefs = []checker.Belief{
		{"ann", "planner", 1, 10*s + 5*ms, 21 * s},
		{"bob", "planner", 2, 24*s + 5*ms, 27 * s},
		{"cy", "planner", 3, 30*s + 5*ms, 37 * s}, // it was not told
		{"ann", "planner", 4, 40*s + 5*ms, 47 * s},
	}
	r.Writes = []checker.Write{
		{"ann", "planner", 1, 0, true, 11 * s},
		{"bob", "planner", 2, 1, true, 25 * s},
		{"ann", "planner", 1, 2, false, 26 * s},
		{"bob", "planner", 2, 0, false, 27 * s}, // the reply was lost
	}
	return r
}

// call is the one of that number.
func call(r checker.Recording, n int) *checker.Call {
	i := slices.IndexFunc(r.Calls, func(c checker.Call) bool { return c.Request == fmt.Sprint("r", n) })
	return &r.Calls[i]
}

// wrongCase is a way to make a recording wrong, and the checker that must find it.
type wrongCase struct {
	name    string
	check   func(checker.Recording) checker.Report
	breakIt func(*checker.Recording)
	want    []checker.Kind
}

func me1(r checker.Recording) checker.Report    { return checker.ME1(r, 0) }
func me2(r checker.Recording) checker.Report    { return checker.ME2(r, 10*ms) }
func linear(r checker.Recording) checker.Report { return checker.Linear(r, 0) }
func lv(r checker.Recording) checker.Report     { return checker.LV(r, 10*ms) }

// drop removes an event from the history, and closes the gap.
func drop(r *checker.Recording, revision int) {
	r.History = slices.Delete(r.History, revision-1, revision)
	for i := range r.History {
		r.History[i].Revision = leadership.Revision(i + 1)
	}
}

func kindsOf(k ...checker.Kind) []checker.Kind { return k }

// The rules make these events of the scripts, refuse these calls, and give answers by which all
// checkers pass.
func TestHistoriesAreWhatTheRulesSay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		history func(testing.TB) checker.Recording
		events  string
		refused string // calls
	}{
		{fourTerms, "configured acquired expired acquired released acquired deleted recreated acquired", "4 6 12 14 17"},
		{unlocked, "acquired unlocked acquired", "2 5"},
		{elected, "configured acquired released acquired handingOver expired acquired", "2 3 4 5 6 9 10 12 13 15"},
		{counted, "configured acquired released acquired", "2 3 4 7 8"},
		{
			ordered, "configured acquired evicted assigned expired acquired paused deposed resumed " +
				"acquired deposed acquired banned deleted recreated acquired released", "7 8 11 12 13 16 17 22 23",
		},
		{approved, "configured acquired approvalRequested approved approved epoch", "8 10 11"},
		{working, "configured acquired deposed acquired paused expired acquired", "8 9 12"},
		{handedOver, "configured acquired serving handingOver ready yielded released acquired serving handingOver ready yielded expired acquired", "3 6 8 12 13 14 20"},
		{underParent, "configured acquired configured acquired released", "3 4 10 11"},
		{parts, "configured acquired delegated delegated released configured acquired configured", "5 7 11 12"},
		{seated, "configured configured configured paused resumed configured acquired expired acquired expired acquired configured acquired configured expired acquired halted lifted", "4 10 14"},
	} {
		r := c.history(t)
		var got []string
		for _, e := range r.History {
			got = append(got, string(e.Type))
		}
		var refused []string
		for n, c := range r.Calls {
			if c.Code != "" {
				refused = append(refused, fmt.Sprint(n+1))
			}
		}
		if diff := cmp.Diff(c.events, strings.Join(got, " ")); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(c.refused, strings.Join(refused, " ")); diff != "" {
			t.Errorf("refused calls (-want +got):\n%s", diff)
		}
		if err := checker.All(r, 10*ms, 0).Err(); err != nil {
			t.Error(err)
		}
	}
}

func TestWrongLeadershipIsFound(t *testing.T) {
	t.Parallel()
	at := func(r *checker.Recording, revision int, d time.Duration) { r.History[revision-1].At = begin.Add(d) }
	for _, c := range []wrongCase{
		{"a grant while another lasts", me1, func(r *checker.Recording) { drop(r, 3) }, kindsOf(checker.TwoLeaders)},
		{"a grant before the lease is over", me1, func(r *checker.Recording) { at(r, 3, 21*s); at(r, 4, 21*s) }, kindsOf(checker.CutShort, checker.TooSoon)},
		{"a grant in the lock delay", me1, func(r *checker.Recording) { at(r, 3, 22*s); at(r, 4, 23*s-1) }, kindsOf(checker.TooSoon)},
		{"a grant right after the lock delay", me1, func(r *checker.Recording) { at(r, 3, 22*s); at(r, 4, 23*s) }, nil},
		{"a grant in what a forced deletion left of the lease", me1, func(r *checker.Recording) { at(r, 9, 39*s-1) }, kindsOf(checker.TooSoon)},
		{"the longer lock of a deletion is gone", me1, func(r *checker.Recording) { at(r, 9, 39*s) }, nil},
		{"a release of another candidate's lease", me1, func(r *checker.Recording) { r.History[4].PreviousLeaderID = "ann" }, kindsOf(checker.Untrue)},
		{"the end of a lease that ended before", me1, func(r *checker.Recording) { r.History[7].Type = leadership.EventReleased }, kindsOf(checker.Untrue)},
		{"time that goes back", me1, func(r *checker.Recording) { at(r, 8, 30*s) }, kindsOf(checker.Backwards)},
		{"a renewal that is shown before the grant", me1, func(r *checker.Recording) { call(*r, 7).Answer.ReadAt = begin.Add(23 * s) }, kindsOf(checker.Early)},
		{"a reader is shown a leader that has stopped", me1, func(r *checker.Recording) { call(*r, 7).Answer.ReadAt = begin.Add(28*s + 1) }, kindsOf(checker.Stale)},
		{"a late renewal that is acknowledged", me1, func(r *checker.Recording) {
			c := call(*r, 6)
			c.Code, c.Answer = "", new(*call(*r, 3).Answer)
			c.Answer.LastHeartbeat, c.Answer.LeaseExpiration = begin.Add(25*s), begin.Add(33*s)
		}, kindsOf(checker.CutShort, checker.TooSoon, checker.Stale, checker.Revived)},
		{"a late renewal that may follow one that was lost", me1, func(r *checker.Recording) {
			c := call(*r, 3)
			c.Answer.LastHeartbeat, c.Answer.LeaseExpiration = begin.Add(18*s), begin.Add(19*s)
			lost := *c
			lost.Answer, lost.Code = nil, leadership.OutcomeUnknown
			r.Calls = append(r.Calls, lost)
		}, nil},
		{"a renewal at the end", me1, func(r *checker.Recording) {
			c := call(*r, 3)
			c.Answer.LastHeartbeat, c.Answer.LeaseExpiration = begin.Add(18*s), begin.Add(19*s)
		}, kindsOf(checker.Revived)},

		{"two who believe", me2, func(r *checker.Recording) { r.Beliefs[0].Until = 24*s + 5*ms + 1 }, kindsOf(checker.Outlived, checker.TwoLeaders)},
		{"a belief within one that is longer", me2, func(r *checker.Recording) {
			r.Beliefs = append(r.Beliefs, checker.Belief{Who: "bob", Election: "planner", Token: 2, From: 42 * s, Until: 43 * s})
		}, kindsOf(checker.Outlived, checker.TwoLeaders)},
		{"a belief beyond the release", me2, func(r *checker.Recording) { r.Beliefs[1].Until = 28*s + 5*ms + 1 }, kindsOf(checker.Outlived)},
		{"a belief up to the answer of the release", me2, func(r *checker.Recording) { r.Beliefs[1].Until = 28*s + 5*ms }, nil},
		{"a belief beyond the lease", me2, func(r *checker.Recording) { r.Beliefs[0].Until = 22*s + 15*ms + 1 }, kindsOf(checker.Outlived)},
		{"a belief up to the end of the lease", me2, func(r *checker.Recording) { r.Beliefs[0].Until = 22*s + 15*ms }, nil},
		{"a belief beyond what a forced deletion left", me2, func(r *checker.Recording) { r.Beliefs[2].Until = 40*s + 5*ms }, kindsOf(checker.Outlived)},
		{"beliefs of two elections", me2, func(r *checker.Recording) {
			r.Beliefs = append(r.Beliefs, checker.Belief{Who: "dot", Election: "scribe", Token: 2, From: 0, Until: 43 * s})
		}, nil},
	} {
		c.run(t)
	}
}

func (c wrongCase) run(t *testing.T) { c.runOn(t, fourTerms) }

func TestWrongFencingIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []wrongCase{
		{"a token that comes again", checker.FT, func(r *checker.Recording) { r.History[3].Token = 1 }, kindsOf(checker.NotNext, checker.NotNext, checker.Phantom, checker.Phantom)},
		{"a token that is left out", checker.FT, func(r *checker.Recording) { r.History[8].Token = 5; r.Calls = r.Calls[:14] }, kindsOf(checker.NotNext)},
		{"a token that begins anew with the election", checker.FT, func(r *checker.Recording) {
			r.History[7].Token, r.History[8].Token = 0, 1
			r.Calls = r.Calls[:12]
		}, kindsOf(checker.NotNext)},
		{"two keys with one token", checker.FT, func(r *checker.Recording) { call(*r, 3).Key = keyOf("bob").Hash() }, kindsOf(checker.Shared)},
		{"a release with another key", checker.FT, func(r *checker.Recording) { call(*r, 8).Key = keyOf("cy").Hash() }, kindsOf(checker.Shared)},
		{"two candidates with one token", checker.FT, func(r *checker.Recording) { call(*r, 3).Candidate = "bob" }, kindsOf(checker.Shared)},
		{"a write with an old token that is let in", checker.FT, func(r *checker.Recording) { r.Writes[2].Admitted = true }, kindsOf(checker.Unfenced)},
		{"a write with the newest token that is not", checker.FT, func(r *checker.Recording) { r.Writes[1].Admitted = false }, kindsOf(checker.ShutOut)},
		{"a write with a token that was never granted", checker.FT, func(r *checker.Recording) { r.Writes[1].Token = 5 }, kindsOf(checker.Phantom)},
	} {
		c.run(t)
	}
}

func TestRepeatedEffectsAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []wrongCase{
		{"a grant that the history has not", checker.ID, func(r *checker.Recording) { r.History = r.History[:8] }, kindsOf(checker.Missing)},
		{"a grant to another", checker.ID, func(r *checker.Recording) { r.History[8].LeaderID = "cy" }, kindsOf(checker.Missing)},
		{"a release that the history has not", checker.ID, func(r *checker.Recording) { drop(r, 5); r.Calls = r.Calls[:9] }, kindsOf(checker.Missing, checker.Missing)},
		{"a deletion that the history has not", checker.ID, func(r *checker.Recording) { r.History = r.History[:6]; r.Calls = r.Calls[:11] }, kindsOf(checker.Missing)},
		{"a configuration that the history has not", checker.ID, func(r *checker.Recording) { r.History = nil; r.Calls = r.Calls[:1] }, kindsOf(checker.Missing)},
		{"another configuration than was asked for", checker.ID, func(r *checker.Recording) { call(*r, 13).Config.LockDelay = 2 * s }, kindsOf(checker.Untrue)},
		{"a refused grant that the history has", checker.ID, func(r *checker.Recording) { r.History[3].RequestID = "r4" }, kindsOf(checker.Denied)},
		{"the end of a lease by a refused request", checker.ID, func(r *checker.Recording) { r.History[2].RequestID = "r6" }, nil},
		{"a request that was granted twice", checker.ID, func(r *checker.Recording) { r.History[8].RequestID = "r5" }, kindsOf(checker.Twice)},
		{"a request that was sent twice, and granted twice", checker.ID, func(r *checker.Recording) { r.History[8].RequestID = "r5"; call(*r, 15).Request = "r5" }, nil},
		{"a second release that releases", func(r checker.Recording) checker.Report { return checker.ME1(r, 0) }, func(r *checker.Recording) {
			r.History[4].RequestID = "r9"
			again := r.History[4]
			r.History = slices.Insert(r.History[:5], 5, again)
			r.History[5].Revision, r.History[5].RequestID = 6, "r8"
			r.Calls = r.Calls[:9]
		}, kindsOf(checker.Untrue)},
		{"a second token for the same key", checker.ID, func(r *checker.Recording) {
			c := call(*r, 5)
			c.Candidate, c.Key, r.History[3].LeaderID = "ann", keyOf("ann").Hash(), "ann"
			r.History[2].At, r.History[3].At = begin.Add(20*s), begin.Add(20*s)
		}, kindsOf(checker.Twice)},
	} {
		c.run(t)
	}
}

// unlocked is two terms: ann's lease of an hour, which an operator ends, and bob's beside what ann
// believes.
func unlocked(tb testing.TB) checker.Recording {
	p := newPlay(tb)
	end := begin.Add(10*s + time.Hour).UTC().Format(time.RFC3339Nano)
	// r1: revision 1, token 1
	p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann", Lease: time.Hour})
	p.at(11*s, checker.Call{Verb: checker.Unlock}) // r2: refused
	// r3: revision 2
	p.at(12*s, checker.Call{Verb: checker.Unlock, Acknowledge: "two leaders may believe until " + end})
	// r4: revision 3, token 2
	p.at(13*s, checker.Call{Verb: checker.Acquire, Candidate: "bob", Lease: 10 * s})
	p.at(14*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1}) // r5: refused
	r := p.recording()
	r.Beliefs = []checker.Belief{
		{"ann", "planner", 1, 10*s + 5*ms, 14*s + 5*ms},
		{"bob", "planner", 2, 13*s + 5*ms, 20 * s},
	}
	return r
}

func TestAnUnlockIsTheOnlyExcuseForTwoLeaders(t *testing.T) {
	t.Parallel()
	for _, c := range []wrongCase{
		{"an unlock that was not acknowledged", me1, func(r *checker.Recording) { call(*r, 3).Acknowledge = "" }, kindsOf(checker.Unacknowledged)},
		{"an unlock for another instant", me1, func(r *checker.Recording) {
			call(*r, 3).Acknowledge = "two leaders may believe until " + begin.Add(time.Minute).UTC().Format(time.RFC3339Nano)
		}, kindsOf(checker.Unacknowledged)},
		{"an unlock that understates the risk", me1, func(r *checker.Recording) {
			end := begin.Add(time.Minute).UTC().Format(time.RFC3339Nano)
			call(*r, 3).Acknowledge, r.History[1].Detail = "two leaders may believe until "+end, `{"twoMayBelieveUntil":"`+end+`"}`
		}, kindsOf(checker.Unacknowledged)},
		{"a grant without the unlock", me1, func(r *checker.Recording) { drop(r, 2) }, kindsOf(checker.TwoLeaders)},
		{"two who believe without the unlock", me2, func(r *checker.Recording) { drop(r, 2) }, kindsOf(checker.Outlived, checker.TwoLeaders)},
		{"another end of the lease in its place", me2, func(r *checker.Recording) { r.History[1].Type = leadership.EventDeleted }, kindsOf(checker.Outlived, checker.TwoLeaders)},
		{"a belief beyond the lease", me2, func(r *checker.Recording) { r.Beliefs[0].Until = 2 * time.Hour }, kindsOf(checker.Outlived)},
		{"an unlock that lowers the token", checker.FT, func(r *checker.Recording) { r.History[1].Token = 0 }, kindsOf(checker.NotNext, checker.NotNext)},
		{"a grant that keeps the token", checker.FT, func(r *checker.Recording) { r.History[2].Token = 1; r.Calls = r.Calls[:3] }, kindsOf(checker.NotNext)},
	} {
		c.runOn(t, unlocked)
	}
}
