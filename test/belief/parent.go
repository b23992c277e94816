package belief

import (
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// Parents is the model of a lease that stands on another one. The parent's is granted, renewed and
// released, to one candidate and then to others; the child's leader reads the parent at any time,
// and acquires or renews by what it has read any time later.
type Parents struct {
	Lease   int // seconds
	Horizon int // so many seconds are looked at
}

// WithinParent is the property of Parents.
const WithinParent Property = "no lease lasts longer than the one that it stands on was ever to last"

// mostTerms is how many terms of the parent are looked at.
const mostTerms = 3

// family is a parent, a child, and what the child's leader has read of the parent.
type family struct {
	now           int8
	parent, child int32 // the numbers of their records
	read          rule.ParentLease
	last          [mostTerms + 1]int8 // the latest end that each of the parent's terms was to have
}

// Search visits all that can be reached within the horizon, nearest first, or stops where the
// property does not hold.
func (m Parents) Search() Result {
	store := handing{number: make(map[rule.Record]int32)}
	config := rule.Policy{Config: leadership.Config{LeaseDuration: time.Duration(m.Lease) * second}}
	above := rule.Record{Election: "reports", Policy: config}
	below := rule.Record{Election: "pages", Policy: config}
	below.Policy.LeadersOf = "reports"
	begin := family{parent: store.remember(above), child: store.remember(below)}
	all, r := explore(begin, func(s family) family { return s }, func(s family, visit func(family, string, Property)) {
		m.next(&store, s, func(to family, how string) {
			var broken Property
			if c := store.records[to.child]; c.LeaderID != "" && c.LeaseEnd().After(now.Add(time.Duration(to.last[c.Standing.Parent.Token])*second)) {
				broken = WithinParent
			}
			visit(to, fmt.Sprintf("%d s: %s", to.now, how), broken)
		})
	})
	for _, s := range all {
		if store.records[s.child].LeaderID != "" {
			r.Believing++
		}
	}
	return r
}

// next calls visit with every state that a step leads to.
func (m Parents) next(store *handing, s family, visit func(family, string)) {
	at := now.Add(time.Duration(s.now) * second)
	if int(s.now) < m.Horizon {
		after := s
		after.now++
		visit(after, "a second has passed")
	}
	parent := rule.Snapshot{Record: store.records[s.parent], Now: at}
	child := rule.Snapshot{Record: store.records[s.child], Now: at}
	above := func(ch rule.Change, err error, text string) {
		if err != nil || ch.Empty() || ch.Record.Token > mostTerms {
			return
		}
		after, r := s, ch.Committed(at)
		after.parent = store.remember(r)
		if r.LeaderID != "" {
			after.last[r.Token] = max(after.last[r.Token], int8(r.LeaseEnd().Sub(now)/second))
		}
		visit(after, text)
	}
	below := func(ch rule.Change, err error, text string) {
		if err != nil || ch.Empty() || ch.Record.Token > mostTerms {
			return
		}
		after := s
		after.child = store.remember(ch.Committed(at))
		visit(after, text)
	}
	for i := range parties {
		ch, err := rule.Acquire(parent, rule.AcquireCommand{CandidateID: "ann", KeyHash: partyKey(i)})
		above(ch, err, "the parent is acquired, or renewed")
	}
	p := parent.Record
	named := rule.Renewal{Election: p.Election, CandidateID: p.LeaderID, KeyHash: p.KeyHash, Token: p.Token}
	ch, err := rule.Apply(parent, leadership.Release{LeaseRequest: named.Request()})
	above(ch, err, "the parent is released")

	if parent.Live() {
		after := s
		after.read = rule.ParentLease{Parent: leadership.Parent{Election: p.Election, Token: p.Token, Until: p.LeaseEnd()}, LeaderID: p.LeaderID}
		visit(after, "the child's leader reads the parent")
	}
	ch, err = rule.Acquire(child, rule.AcquireCommand{CandidateID: "ann", KeyHash: partyKey(ann), Parent: s.read})
	below(ch, err, "the child is acquired, or renewed")
	c := child.Record
	ch, err = rule.Renew(child, rule.Renewal{Election: c.Election, CandidateID: c.LeaderID, KeyHash: c.KeyHash, Token: c.Token, Parent: s.read})
	below(ch, err, "the child is renewed")
}
