package simulation

import (
	"errors"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/test/checker"
)

// handing is what is drawn of hand-overs, and of leases that stand on others.
type handing struct {
	share     float64 // of the leaders that hand over when their term is over
	promotion bool    // leaders have to say that they serve
	tree      bool    // the second election is for leaders of the first; the third is a part of the first
}

// drawHanding draws hand-overs and trees.
func (w *timeline) drawHanding() (h handing) {
	if w.chance(0.5) {
		h.share = w.between(0, time.Second).Seconds()
	}
	h.promotion, h.tree = w.chance(0.2), w.chance(0.3)
	return h
}

// partOf is the election of which the other one is a part; "" if it is none.
func (p plan) partOf(n int) leadership.Election {
	if p.handing.tree && n == 2 {
		return first
	}
	return ""
}

// first is the election on whose leases others stand.
const first = leadership.Election("election-1")

// name is that of an election.
func (p plan) name(n int, plain leadership.Election) leadership.Election {
	if of := p.partOf(n); of != "" {
		return of + ".part"
	}
	return plain
}

// stands reports whether the leases of an election stand on others.
func (s *simulation) stands(e leadership.Election) bool { return s.plan.handing.tree && e != first }

// under puts the parents of an election into its configuration.
func (s *simulation) under(e leadership.Election, c *leadership.Config) {
	switch c.Promotion = s.plan.handing.promotion; {
	case !s.stands(e):
	case strings.HasPrefix(string(e), string(first)+"."):
		c.Delegation = leadership.Delegation{Parent: first, Children: 1}
	default:
		c.LeadersOf = string(first)
	}
}

// via is the lease that the candidate of the same name leads the first election by.
func (a *agent) via() (v leadership.Via) {
	if a.seated || !a.s.stands(a.election) {
		return v
	}
	for _, other := range a.s.of(first) {
		if other.name == a.name && other.left() > 0 {
			v = leadership.Via{Election: first, Token: other.token}
		}
	}
	return v
}

// named is the present lease in a call.
func (a *agent) named() leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: a.election, CandidateID: a.name, Key: a.key, Token: a.token}
}

// handsOver names a successor and goes on until that is ready. It may be one that never comes.
func (a *agent) handsOver() {
	w := a.s.w
	others := a.s.of(a.election)
	to := others[w.random.IntN(len(others))]
	if to == a || a.left() == 0 {
		return
	}
	r := leadership.HandOver{LeaseRequest: a.named(), To: to.name, Within: max(w.about(3*a.s.plan.lease), leadership.MinWithin).Truncate(time.Millisecond)}
	r.Within = min(r.Within, leadership.MaxWithin)
	c := checker.Call{Verb: checker.HandOver, Key: a.key.Hash(), Token: a.token, To: r.To, Within: r.Within}
	a.aside(c, r, func(err error) {
		if err == nil && w.chance(0.9) {
			w.after(w.upTo(a.s.plan.lease/4), func() { to.does(to.saysReady) })
		}
	})
}

// serves says so of a new leader.
func (a *agent) serves() {
	r := a.named()
	a.aside(checker.Call{Verb: checker.Serving, Key: a.key.Hash(), Token: r.Token}, leadership.SayServing{LeaseRequest: r}, func(error) {})
}

// saysReady says so, with the key with which the candidate campaigns.
func (a *agent) saysReady() {
	if a.keyless {
		return
	}
	r := leadership.LeaseRequest{Election: a.election, CandidateID: a.name, Key: a.key, Token: max(1, a.s.truth.reign(a.election).token)}
	c := checker.Call{Verb: checker.Ready, Key: a.key.Hash(), Token: r.Token}
	a.aside(c, leadership.SayReady{LeaseRequest: r}, func(error) {})
}

// yields stops, and lets its successor lead. It asks until it is answered.
func (a *agent) yields() { a.stops("yields", a.yield) }

func (a *agent) yield() {
	r := a.named()
	c := checker.Call{Verb: checker.Yield, Key: r.Key.Hash(), Token: a.token}
	later := func() { a.after(a.pace(), a.yield) }
	a.ask(c, 10*time.Second, serves(leadership.Yield{LeaseRequest: r}, func(err error) {
		switch {
		case err == nil, errors.Is(err, leadership.LeaseLost):
			a.after(a.s.w.upTo(5*time.Second), a.begin)
		case errors.Is(err, leadership.NotReady):
			a.release()
		default:
			later()
		}
	}), later)
}

// ready notes which incarnation is the successor.
func (t *truth) ready(r *reign, now rule.Record, e leadership.Event) {
	r.successor = now.Standing.Succession.Key
	if r.yielded {
		t.accuse(ME1, "%s: after the yield of token %d another successor is ready: %s", e.Election, e.Token, e.Detail)
	}
}

// gaveUp notes a yield: what the leader was promised counts no more, and it has stopped.
func (t *truth) gaveUp(r *reign, now rule.Record, e leadership.Event) {
	if r.successor == (leadership.KeyHash{}) {
		t.accuse(ME1, "%s: token %d is yielded, and no successor is ready", e.Election, e.Token)
	}
	r.yielded, r.gave, r.end, r.yieldedAt = true, r.end, now.LeaseEnd(), e.Revision
	if t.skewed {
		return
	}
	for _, a := range t.believers(e.Election) {
		if left := a.left(); left > 0 && a.token <= now.Token && a.token >= r.first {
			t.accuse(ME2, "%s: %s has yielded, and believes in token %d for another %v", e.Election, a.name, a.token, left)
		}
	}
}

// takenOver checks a grant to a successor, in the same instant as the end of the term before.
func (t *truth) takenOver(r *reign, now rule.Record) {
	t.figures.TakenOver++
	if !r.yielded || now.KeyHash != r.successor {
		t.accuse(ME1, "%s: token %d was handed over to %q; yielded is %t, and the successor has that key: %t", now.Election, now.Token, now.LeaderID, r.yielded, now.KeyHash == r.successor)
	}
}

// within checks that a lease that stands on another one lasts no longer than that was ever to last.
func (t *truth) within(now rule.Record, end time.Time) {
	p := now.Standing.Parent
	if p.Token == 0 || now.LeaderID == "" {
		return
	}
	t.figures.Stood++
	if last, ok := t.lasted[tokenOf{p.Election, p.Token}]; !ok || end.After(last) && !t.skewed {
		t.accuse(ME1, "%s: the lease of token %d ends at %v, and that which it stands on was never to last beyond %v (%t)", now.Election, now.Token, end.Sub(epoch), last.Sub(epoch), ok)
	}
}
