package checker_test

import (
	"testing"
	"time"

	"regent/leadership"
	"regent/test/checker"
)

func se(r checker.Recording) checker.Report { return checker.SE(r, 0) }

// seated is an election with two seats, then one, then two again, which is paused and then halted.
// The candidates are such as begin at the first free seat.
func seated(tb testing.TB) checker.Recording {
	p := newPlay(tb)
	at := func(now time.Duration, c checker.Call) {
		c.Election = "gpu" + c.Election
		p.at(now, c)
	}
	seats := func(n int) checker.Call {
		return checker.Call{Verb: checker.Configure, Config: leadership.Config{LeaseDuration: 8 * s, Seats: n}}
	}
	order := func(kind leadership.OrderKind, of leadership.Election, d time.Duration) checker.Call {
		return checker.Call{Verb: checker.Order, Election: of, Order: leadership.Order{Kind: kind, For: d, Reason: "it has to be", Actor: "dot"}}
	}
	at(s, seats(2))                                                                         // r1
	at(10*s, checker.Call{Verb: checker.Acquire, Candidate: "fay"})                         // r2: seat 1, token 1
	at(11*s, checker.Call{Verb: checker.Acquire, Candidate: "bob"})                         // r3: seat 2, token 1, until 19 s
	at(12*s, checker.Call{Verb: checker.Acquire, Candidate: "cy"})                          // r4: refused
	at(13*s, checker.Call{Verb: checker.Renew, Candidate: "bob", Election: ".2", Token: 1}) // r5: until 21 s
	at(14*s, seats(1))                                                                      // r6: bob's ends at 21 s
	at(15*s, checker.Call{Verb: checker.Renew, Candidate: "bob", Election: ".2", Token: 1}) // r7: until 21 s
	at(16*s, checker.Call{Verb: checker.Renew, Candidate: "fay", Election: ".1", Token: 1}) // r8: until 24 s
	at(17*s, checker.Call{Verb: checker.Renew, Candidate: "bob", Election: ".2", Token: 1}) // r9: until 21 s
	at(22*s, checker.Call{Verb: checker.Acquire, Candidate: "cy"})                          // r10: refused, for fay leads
	at(23*s, seats(2))                                                                      // r11
	at(23*s+500*ms, checker.Call{Verb: checker.Acquire, Candidate: "cy"})                   // r12: seat 2, token 2
	at(26*s, order(leadership.OrderPause, "", 20*s))                                        // r13: until 46 s
	at(27*s, checker.Call{Verb: checker.Acquire, Candidate: "dot"})                         // r14: refused, though seat 1 is free
	at(28*s, checker.Call{Verb: checker.Get, Election: ".1"})                               // r15
	at(30*s, order(leadership.OrderResume, "", 0))                                          // r16
	at(31*s, checker.Call{Verb: checker.Acquire, Candidate: "dot"})                         // r17: seat 1, token 2
	at(32*s, order(leadership.OrderHalt, "*", 60*s))                                        // r18
	at(50*s, order(leadership.OrderUnhalt, "*", 0))                                         // r19
	at(51*s, checker.Call{Verb: checker.Acquire, Candidate: "eve"})                         // r20: seat 1, token 3
	return p.recording()
}

func TestWrongSeatsAreFound(t *testing.T) {
	t.Parallel()
	of := func(r *checker.Recording, e leadership.Election, revision leadership.Revision) *leadership.Event {
		for i := range r.History {
			if r.History[i].Election == e && r.History[i].Revision == revision {
				return &r.History[i]
			}
		}
		panic("there is no such event")
	}
	at := func(r *checker.Recording, e leadership.Election, revision leadership.Revision, d time.Duration) {
		of(r, e, revision).At = begin.Add(d)
	}
	for _, c := range []wrongCase{
		{"nothing", se, func(*checker.Recording) {}, nil},
		{"a seat that there is no more", se, func(r *checker.Recording) { at(r, "gpu.2", 5, 22*s) }, kindsOf(checker.Beyond)},
		{"one by what was before, until the change is answered", se, func(r *checker.Recording) {
			call(*r, 6).Answered = checker.Forever
			at(r, "gpu.2", 5, 22*s)
		}, nil},
		{"a third of two seats", se, func(r *checker.Recording) {
			third := *of(r, "gpu.2", 2)
			third.Election, third.Revision, third.RequestID = "gpu.3", 1, "r4"
			r.History = append(r.History, third)
		}, kindsOf(checker.Beyond)},
		{"two leaders of one seat", se, func(r *checker.Recording) {
			e := of(r, "gpu.2", 3)
			e.Type, e.RequestID, e.At, e.Token = leadership.EventAcquired, "r4", begin.Add(12*s), 7
		}, kindsOf(checker.TwoLeaders)},
		{"a renewal of a seat that there is no more", se, func(r *checker.Recording) {
			a := call(*r, 9).Answer
			a.LeaseExpiration = a.LastHeartbeat.Add(a.LeaseDuration)
		}, kindsOf(checker.Outlived)},
		{"a grant while paused", se, func(r *checker.Recording) { at(r, "gpu.1", 4, 29*s) }, kindsOf(checker.Barred)},
		{"a grant in a halt that is heard of", se, func(r *checker.Recording) { at(r, "gpu.1", 6, 37*s+1) }, kindsOf(checker.Barred)},
		{"a grant in one that may not be", se, func(r *checker.Recording) { at(r, "gpu.1", 6, 37*s) }, nil},
		{"a grant in a halt of which its call tells nothing", se, func(r *checker.Recording) {
			at(r, "gpu.1", 6, 37*s+1)
			c := call(*r, 20)
			c.Code, c.Answer = leadership.StoreUnavailable, nil
		}, nil},
	} {
		c.runOn(t, seated)
	}
}
