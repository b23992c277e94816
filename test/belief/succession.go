package belief

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// Succession is the model of a hand-over: ann leads, and may hand over to bob; a thief has bob's
// name and another key, and its answers do not matter. Each is one incarnation, which is done when
// it has stopped to lead. Calls are under way for as long as they like, their answers are lost, and
// they arrive again. All clocks are exact.
type Succession struct {
	Lease   int // seconds
	Horizon int // so many seconds are looked at
}

// The properties of a hand-over, beside NeverTwo and NoneAfterEnd.
const (
	StopsAtYield Property = "no leader believes that it leads once its yield is done"
	YieldedFirst Property = "no lease that lasts is granted, but to a successor after the leader's yield"
	NotStolen    Property = "no incarnation takes over but the one that said first that it is ready"
)

// The calls of a hand-over, beside acquire and renew.
const (
	handOver verb = iota + release + 1
	sayReady
	yield
	verbs
)

var handVerbs = [...]string{acquire: "acquire", renew: "renew", handOver: "handOver", sayReady: "ready", yield: "yield"}

// The parties.
const (
	ann = iota
	bob
	thief
	parties
)

var partyNames = [parties]string{"ann", "bob", "the thief"}

// party is all that matters of one. Instants are seconds from the beginning.
type party struct {
	call   verb // under way, or answered
	done   bool // it was answered
	yes    bool // so
	sent   int8 // when the clock was read before the call
	left   int8 // of the lease, as the answer has it
	got    int8 // the token in the answer
	until  int8 // it believes that it leads before that instant
	token  int8 // of the lease that it was granted last; 0: none
	over   bool // it has stopped, and does not lead again
	killed bool
}

// handState is the store and the parties.
type handState struct {
	now     int8
	record  int32 // the number of the record
	first   int8  // 1 + the party that was ready first in this term; 0: none
	parties [parties]party
}

// handing is a search of the model.
type handing struct {
	model   Succession
	records []rule.Record
	number  map[rule.Record]int32
	served  map[handInput]handAnswer
	broken  Property
}

// Search visits all that can be reached within the horizon, nearest first, or stops where a
// property does not hold.
func (m Succession) Search() Result {
	x := handing{model: m, number: make(map[rule.Record]int32), served: make(map[handInput]handAnswer)}
	policy := rule.Policy{Config: leadership.Config{LeaseDuration: time.Duration(m.Lease) * second}}
	begin := handState{record: x.remember(rule.Record{Election: "reports", Policy: policy})}
	type way struct {
		from int
		how  string
	}
	var r Result
	all, ways, known := []handState{begin}, []way{{}}, map[handState]bool{begin: true}
	for at := 0; at < len(all) && r.Broken == ""; at++ {
		x.next(all[at], func(to handState, how string) {
			r.Steps++
			broken := cmp.Or(x.broken, x.check(to))
			if x.broken = ""; r.Broken != "" || known[to] && broken == "" {
				return
			}
			known[to], r.Broken = true, broken
			all, ways = append(all, to), append(ways, way{at, fmt.Sprintf("%d s: %s", to.now, how)})
		})
		if slices.ContainsFunc(all[at].parties[:], func(p party) bool { return p.until > all[at].now }) {
			r.Believing++
		}
	}
	for n := len(all) - 1; n > 0 && r.Broken != ""; n = ways[n].from {
		r.Trace = append(r.Trace, ways[n].how)
	}
	slices.Reverse(r.Trace)
	r.States = len(all)
	return r
}

// remember numbers a record. Revisions and events make no difference to the rules.
func (x *handing) remember(r rule.Record) int32 {
	r.Revision = 1
	if r.Token == 0 {
		r.Revision = 0
	}
	n, ok := x.number[r]
	if !ok {
		n = int32(len(x.records))
		x.records, x.number[r] = append(x.records, r), n
	}
	return n
}

// check returns the property that does not hold in a state; "" if all do.
func (x *handing) check(s handState) Property {
	believers, snap := 0, x.snapshot(s)
	for i, p := range s.parties {
		if p.until <= s.now {
			continue
		}
		if believers++; !snap.Live() || snap.Record.KeyHash != partyKey(i) {
			return NoneAfterEnd
		} else if !snap.Record.Standing.Succession.Yielded.IsZero() {
			return StopsAtYield
		}
	}
	if believers > 1 {
		return NeverTwo
	}
	return ""
}

func (x *handing) snapshot(s handState) rule.Snapshot {
	return rule.Snapshot{Record: x.records[s.record], Now: now.Add(time.Duration(s.now) * second)}
}

func partyKey(i int) leadership.KeyHash { return leadership.KeyHash{byte(i + 1)} }

func partyID(i int) leadership.CandidateID {
	return [parties]leadership.CandidateID{"ann", "bob", "bob"}[i]
}

// next calls visit with every state that a step leads to.
func (x *handing) next(s handState, visit func(handState, string)) {
	if int(s.now) < x.model.Horizon {
		after := s
		after.now++
		visit(after, "a second has passed")
	}
	for i := range s.parties {
		x.acts(s, i, visit)
		p := s.parties[i]
		for _, v := range p.copies(i) {
			after := s
			x.serve(&after, i, v)
			visit(after, fmt.Sprintf("a copy of %s's %s arrives", partyNames[i], handVerbs[v]))
		}
		if p.killed || p.call == silence {
			continue
		}
		after := s
		if !p.done {
			a := &after.parties[i]
			a.yes, a.left, a.got = x.serve(&after, i, p.call)
			a.done = true
			visit(after, fmt.Sprintf("the %s of %s reaches the store; done: %t", handVerbs[p.call], partyNames[i], a.yes))
		} else {
			x.hear(&after, i)
			visit(after, fmt.Sprintf("%s hears the answer to its %s", partyNames[i], handVerbs[p.call]))
		}
		after = s
		after.parties[i].call, after.parties[i].done = silence, false
		visit(after, fmt.Sprintf("%s waits no longer for the answer to its %s", partyNames[i], handVerbs[p.call]))
	}
}

// copies are the calls of which a copy may arrive at any time, and bring no answer.
func (p party) copies(i int) []verb {
	switch {
	case i != ann:
		return []verb{acquire, sayReady}
	case p.over:
		return []verb{acquire, yield}
	}
	return []verb{acquire}
}

// acts is what a party may do by itself.
func (x *handing) acts(s handState, i int, visit func(handState, string)) {
	p := s.parties[i]
	if p.killed || i == thief { // copies of the thief's calls are enough
		return
	}
	killed := s
	killed.parties[i] = party{killed: true, over: p.over, token: p.token}
	visit(killed, partyNames[i]+" is killed")
	if p.call != silence {
		return
	}
	send := func(v verb) {
		after := s
		a := &after.parties[i]
		a.call, a.done, a.sent = v, false, s.now
		visit(after, fmt.Sprintf("%s looks at its clock and sends a %s", partyNames[i], handVerbs[v]))
	}
	switch leads := p.until > s.now; {
	case leads:
		send(renew)
		if i == ann {
			send(handOver)
			after := s
			after.parties[i].until, after.parties[i].over = 0, true
			visit(after, partyNames[i]+" has stopped its work")
		}
	case p.over:
		send(yield)
	case p.token == 0:
		send(acquire)
		if i != ann {
			send(sayReady)
		}
	}
}

// handInput is what a call does depends on, and handAnswer what it does.
type handInput struct {
	record     int32
	now, first int8
	party      int8
	verb       verb
	token      int8
}

type handAnswer struct {
	record      int32
	first       int8
	yes         bool
	left, token int8
	broken      Property
}

// serve lets a call reach the store. It returns whether it was done, and what is left of the lease
// then, with its token.
func (x *handing) serve(s *handState, i int, v verb) (yes bool, left, token int8) {
	in := handInput{s.record, s.now, s.first, int8(i), v, max(s.parties[i].token, 1)}
	a, ok := x.served[in]
	if !ok {
		a = x.decide(in)
		x.served[in] = a
	}
	x.broken = a.broken
	s.record, s.first = a.record, a.first
	return a.yes, a.left, a.token
}

// decide runs the real rules.
func (x *handing) decide(in handInput) handAnswer {
	no := handAnswer{record: in.record, first: in.first}
	before := x.records[in.record]
	snap := rule.Snapshot{Record: before, Now: now.Add(time.Duration(in.now) * second)}
	named := rule.Renewal{Election: before.Election, CandidateID: partyID(int(in.party)), KeyHash: partyKey(int(in.party)), Token: leadership.Token(in.token)}
	var ch rule.Change
	var err error
	switch in.verb {
	case acquire:
		ch, err = rule.Acquire(snap, rule.AcquireCommand{CandidateID: named.CandidateID, KeyHash: named.KeyHash})
	case renew:
		ch, err = rule.Renew(snap, named)
	case handOver:
		ch, err = rule.Apply(snap, leadership.HandOver{LeaseRequest: named.Request(), To: partyID(bob), Within: time.Duration(x.model.Lease) * second})
	case sayReady:
		ch, err = rule.Apply(snap, leadership.SayReady{LeaseRequest: rule.Renewal{CandidateID: named.CandidateID, KeyHash: named.KeyHash, Token: snap.Record.Token}.Request()})
	case yield:
		ch, err = rule.Apply(snap, leadership.Yield{LeaseRequest: named.Request()})
	}
	if err != nil {
		return no
	}
	after := before
	if !ch.Empty() {
		after = ch.Committed(snap.Now)
	}
	if after.Token > before.Token {
		switch {
		case !snap.Live():
		case before.Standing.Succession.Yielded.IsZero():
			no.broken = YieldedFirst
		case in.first != in.party+1:
			no.broken = NotStolen
		}
		no.first = 0
	}
	if in.verb == sayReady && no.first == 0 && after.Standing.Succession.Ready != "" {
		no.first = in.party + 1
	}
	no.record, no.yes = x.remember(after), true
	no.left, no.token = int8(after.LeaseEnd().Sub(snap.Now)/second), int8(after.Token)
	return no
}

// hear lets a party learn the answer to its call.
func (x *handing) hear(s *handState, i int) {
	p := &s.parties[i]
	switch {
	case p.call == acquire && p.yes:
		p.until, p.token = p.sent+p.left, p.got
	case p.call == renew && p.yes:
		p.until = max(p.until, p.sent+p.left)
	case p.call == renew:
		p.until, p.over = 0, true
	}
	p.call, p.done, p.yes, p.left, p.got = silence, false, false, 0, 0
}
