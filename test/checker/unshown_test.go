package checker_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/test/checker"
)

// Two calls of ann with one key were waiting, and asked for leases of different lengths.
func TestAnswerToTwoWaitingCallsIsThatOfOne(t *testing.T) {
	t.Parallel()
	r := fourTerms(t)
	joined := *call(r, 15)
	joined.Request, joined.Lease = "joined", 20*s
	r.Calls = append(r.Calls, joined)
	if err := checker.All(r, 10*ms, 0).Err(); err != nil {
		t.Error(err)
	}
	a := *joined.Answer
	a.LastHeartbeat, a.LeaseExpiration = a.LastHeartbeat.Add(1), a.LeaseExpiration.Add(1)
	r.Calls[len(r.Calls)-1].Answer = &a
	if diff := cmp.Diff(kindsOf(checker.Illegal), kinds(linear(r))); diff != "" {
		t.Errorf("another heartbeat, which is no longer: (-want +got):\n%s", diff)
	}
}

func TestWaitingCandidateMayRecordTheEndsOfSeveralTerms(t *testing.T) {
	t.Parallel()
	r := fourTerms(t)
	r.History[4].Type, r.History[4].RequestID = leadership.EventExpired, "r5"
	r.History[5].RequestID = "r5" // after a grant that it found over, unheard of
	r.History[1].RequestID, r.History[2].RequestID = "r5", "other"
	if err := checker.ID(r).Err(); err != nil {
		t.Error(err)
	}
	r.History[4].Token = 1
	if got := kinds(checker.ID(r)); len(got) == 0 || got[0] != checker.Twice {
		t.Errorf("the same end twice: %v", got)
	}
}

// ann's renewal at the end of her term is committed by a clock that is ahead, and too late. A read
// by one that is behind shows her lease, with the start that it then has.
func TestReadMayShowAHeartbeatThatCameTooLate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		before  time.Duration // the end, the read
		start   time.Duration
		without []int
		want    []checker.Kind
	}{
		{"just before the end", storeGuard, 14 * s, nil, nil},
		{"sooner than the clocks differ", storeGuard + 1, 14 * s, nil, kindsOf(checker.Illegal)},
		{"another start", storeGuard, 14*s - 1, nil, kindsOf(checker.Illegal)},
		{"without a renewal", storeGuard, 14 * s, []int{6}, kindsOf(checker.Illegal)},
	} {
		p := newPlay(t)
		evict := leadership.Order{Kind: leadership.OrderEvict, Reason: "it is time", Actor: "olga"}
		p.at(s, checker.Call{Verb: checker.Configure, Config: leadership.Config{LeaseDuration: 8 * s}}) // r1
		p.at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})                               // r2
		p.at(14*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})                       // r3: until 22 s
		p.at(15*s, checker.Call{Verb: checker.Order, Order: evict})                                     // r4: no longer
		p.at(16*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})                       // r5
		p.at(22*s-60*ms, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 1})                 // r6
		p.at(22*s-c.before, checker.Call{Verb: checker.Get})                                            // r7
		p.at(23*s, checker.Call{Verb: checker.Release, Candidate: "ann", Token: 1})                     // r8
		r := p.recording()
		lose(&r, 6)
		a := call(r, 7).Answer
		a.LastHeartbeat = begin.Add(c.start)
		without(&r, c.without...)
		if diff := cmp.Diff(c.want, kinds(guarded(r))); diff != "" {
			t.Errorf("%s: (-want +got):\n%s%v", c.name, diff, guarded(r).Err())
		}
	}
}

// A call of ann is granted a lease that is over when it would be told, and asks again. The answer
// to its second grant is that of another call with the same key.
func TestCallMayBeGrantedAgainWhatWasOver(t *testing.T) {
	t.Parallel()
	p := kept(t)
	p.at(19*s, checker.Call{Verb: checker.Acquire, Candidate: "ann"})         // r3: token 2
	p.at(20*s, checker.Call{Verb: checker.Renew, Candidate: "ann", Token: 2}) // r4
	r := p.recording()
	joined := *call(r, 3)
	joined.Request = "joined"
	r.Calls = append(r.Calls, joined)
	call(r, 3).Asked = call(r, 2).Asked
	lose(&r, 3)
	without(&r, 2)
	r.History[1].RequestID = "r3"
	if err := linear(r).Err(); err != nil {
		t.Error(err)
	}
	call(r, 3).Key = keyOf("bob").Hash()
	if diff := cmp.Diff(kindsOf(checker.Illegal), kinds(linear(r))); diff != "" {
		t.Errorf("with another key: (-want +got):\n%s", diff)
	}
}
