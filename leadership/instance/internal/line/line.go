package line

import (
	"container/list"
	"iter"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

// keep is how long a place without a caller is kept for the candidate to return.
const keep = 5 * time.Second

// Common is the state that all lines of an instance share.
type Common struct {
	// Instance is leadership.InLine.Instance of each attempt.
	Instance uint32
	// Jitter draws a duration from 0 up to the limit, which is positive.
	Jitter func(limit time.Duration) time.Duration
	// Key draws a key for a candidate that came without one.
	Key func() leadership.Key
	// View has what the instance knows of the elections.
	View *view.View
	// Present reports whether the instance has heard of a member lately; nil: of none.
	Present func(leadership.Election, leadership.CandidateID) bool
	// Halts is what the view knows of leadership.HaltsElection; nil if there are no halts.
	Halts *view.Election

	changes int // of who stands in line, in any of them
}

func (c *Common) jitter(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return c.Jitter(limit)
}

// halts changes whenever an event may have changed which elections are halted.
func (c *Common) halts() int {
	if c.Halts == nil {
		return 0
	}
	return c.Halts.Orders()
}

// present is leadership.InLine.Present for an election.
func (c *Common) present(e leadership.Election) func(leadership.CandidateID) bool {
	if c.Present == nil {
		return nil
	}
	return func(member leadership.CandidateID) bool { return c.Present(e, member) }
}

// Line is where the candidates for one election stand.
type Line struct {
	common   *Common
	election *view.Election
	wake     func()

	places  list.List                                 // of *place, in the order in which they were taken
	named   map[identity]*place                       // those with a key of the candidate's own
	callers int                                       // in all places
	kept    int                                       // places without a caller
	asking  *place                                    // the store is being asked for it
	ahead   []*place                                  // those to ask for before their turn: they may have the lease
	orphans map[leadership.CandidateID]leadership.Key // keys that no caller was told, and that an attempt of unknown outcome may have been granted the lease with

	rule       ranking
	top        top
	bars       bars
	ballot     ballot
	claim      claim
	parent     parent
	heir       heir
	seats      []*view.Election // those of an election that has some
	challenged bool             // the present leader is, by a candidate here or elsewhere

	seen     seen
	term     leadership.Token // of the last leader whose places were looked for
	next     time.Duration    // when the head asks
	end      time.Duration    // so, if that is because a lease should be over
	poll     time.Duration    // when it asks if not all events are heard and it has not asked before
	failures failures
}

// New returns the line that a first caller begins. An attempt is made for that caller in any case.
// Wake is called when there is something to do sooner than Turn has said; it must not call the
// line.
func New(common *Common, e *view.Election, wake func(), first *Caller, r leadership.AcquireRequest, now time.Duration) *Line {
	l := &Line{common: common, election: e, wake: wake, named: make(map[identity]*place)}
	l.see()
	l.add(first, r, now)
	l.asking = first.place
	return l
}

// Owns reports whether the request may be that of the present leader, as far as is known, and the
// token of the lease. Such a call is not to stand in line for its own lease.
func (l *Line) Owns(r leadership.AcquireRequest, now time.Duration) (leadership.Token, bool) {
	for _, s := range l.seats {
		if leader, token := s.Term(); r.Key != nil && leader == r.CandidateID && s.Leads(leader, now) {
			return token, true
		}
	}
	leader, token := l.election.Term()
	return token, r.Key != nil && leader == r.CandidateID && l.election.Leads(leader, now)
}

// place is a candidate's place in the line.
type place struct {
	at      *list.Element
	request leadership.AcquireRequest
	since   time.Duration    // when its candidate came first
	drawn   bool             // the key is known to the queue alone
	callers []*Caller        // several if a client has asked again while its first call was waiting
	left    time.Duration    // when the last caller went
	unknown error            // of the last attempt, if its outcome is unknown
	told    leadership.Token // of the lease that the last attempt was refused for
	tried   try              // the last term in which the store was asked to let it challenge the leader
	retry   time.Duration    // no sooner it challenges the leader, or takes the lease over
	passed  leadership.Token // of the last yielded lease that the store refused to it
	awaited bool             // the wait of its last caller was over, so that it may be back at once
	removed bool             // from the line
}

// identity is the key by which a place is found.
type identity struct {
	candidate leadership.CandidateID
	key       leadership.Key
}

// Join puts a caller in line. For one that comes back to an attempt of unknown outcome the store is
// asked at once.
func (l *Line) Join(c *Caller, r leadership.AcquireRequest, now time.Duration) {
	l.add(c, r, now)
	switch p := c.place; {
	case p.unknown != nil:
		l.prefer(p)
		l.failures.again = now
		l.wake()
	case l.class(p) == ineligible: // it is told so at once
		l.prefer(p)
		l.wake()
	case p == l.successor(now):
		l.wake()
	case l.isAssigned(p.request.CandidateID, now):
		l.next = min(l.next, max(l.open(now), now))
		l.wake()
	case l.ballot.open() && l.ballot.refusal.Reason == leadership.ReasonQuorum && l.rule.policy.Quorum.Electorate.Has(string(p.request.CandidateID)):
		l.next = min(l.next, now) // it may complete the quorum for which the ballot waits
		l.wake()
	case l.brings(p, now):
		l.next = min(l.next, now)
		l.wake()
	case l.callers == 1 || l.best(now) == p:
		l.wake() // it is the first, or the one that the store is to be asked for
	case l.ballot.open() || l.rule.policy.Preempt:
		l.wake() // it may be better
	}
}

// Leave answers a caller that stops waiting: with why or, if that is nil, with the refusal for a
// wait that is over. If an attempt for its place is under way, the outcome of that is its answer.
// It does nothing if the caller was answered already.
func (l *Line) Leave(c *Caller, why error, now time.Duration) {
	if c.place == nil {
		return
	}
	c.leaving, c.why = true, why
	l.notice(now)
	if l.asking != c.place {
		l.dismiss(c, now)
	}
}

func (l *Line) add(c *Caller, r leadership.AcquireRequest, now time.Duration) {
	p, isNew := l.place(r, now)
	if isNew {
		p.since = c.called
	}
	c.place, p.callers = p, append(p.callers, c)
	l.callers++
	l.consider(p, isNew, now)
}

// place finds the candidate's place, or gives it one at the end.
func (l *Line) place(r leadership.AcquireRequest, now time.Duration) (p *place, isNew bool) {
	if r.Key == nil {
		r.Key = new(l.common.Key())
		return l.push(&place{request: r, drawn: true}), true
	}
	id := identity{r.CandidateID, *r.Key}
	p, ok := l.named[id]
	if ok && p.forfeit(now) {
		l.forget(p)
		ok = false
	}
	if !ok {
		p = l.push(&place{})
		l.named[id] = p
	} else if len(p.callers) == 0 {
		l.kept--
	}
	if ok && p.request.Candidacy != r.Candidacy {
		p.tried = try{}
		l.common.changes++
	}
	p.request = r
	return p, !ok
}

func (l *Line) push(p *place) *place {
	p.at = l.places.PushBack(p)
	l.common.changes++
	return p
}

// remove takes a place out of the line. What bars its candidate is forgotten, or a line that goes
// on would keep it of all that restart with new names.
func (l *Line) remove(p *place) {
	delete(l.bars.own, callerOf(p.request))
	l.places.Remove(p.at)
	p.removed = true
	l.common.changes++
	if !p.drawn {
		delete(l.named, identity{p.request.CandidateID, *p.request.Key})
	}
}

// forfeit reports whether no caller has come back to the place in time.
func (p *place) forfeit(now time.Duration) bool { return len(p.callers) == 0 && now-p.left > keep }

// forget removes a place without a caller.
func (l *Line) forget(p *place) {
	l.kept--
	l.remove(p)
}

// forgetForfeit removes the places to which no caller has come back in time; all without a caller
// if the queue is closed.
func (l *Line) forgetForfeit(now time.Duration, closed bool) {
	if l.kept == 0 {
		return
	}
	for p := range l.each() {
		if p.forfeit(now) || closed && len(p.callers) == 0 {
			l.forget(p)
		}
	}
}

// each yields the places in order. The one that was yielded last may be removed.
func (l *Line) each() iter.Seq[*place] {
	return func(yield func(*place) bool) {
		for at := l.places.Front(); at != nil; {
			p := at.Value.(*place)
			at = at.Next()
			if !yield(p) {
				return
			}
		}
	}
}

// prefer lets a place be asked for before its turn.
func (l *Line) prefer(p *place) {
	if !slices.Contains(l.ahead, p) {
		l.ahead = append(l.ahead, p)
	}
}

// preferred returns the first place to ask for before its turn, or nil.
func (l *Line) preferred() *place {
	for len(l.ahead) > 0 {
		if p := l.ahead[0]; len(p.callers) > 0 {
			return p
		}
		l.ahead = l.ahead[1:]
	}
	return nil
}

// head is the place to ask for next: the best, unless one comes before its turn; nil if there is
// none.
func (l *Line) head(now time.Duration) *place {
	if p := l.preferred(); p != nil {
		return p
	}
	if p := l.successor(now); p != nil {
		return p
	}
	if p := l.assignee(now); p != nil {
		return p
	}
	if p, at := l.expected(now); p != nil && at <= now && now < l.next {
		return p
	}
	return l.best(now)
}

// dismiss answers a caller who leaves.
func (l *Line) dismiss(c *Caller, now time.Duration) {
	p := c.place
	c.refused(l.parting(c, now))
	p.callers = slices.DeleteFunc(p.callers, func(other *Caller) bool { return other == c })
	if l.callers--; l.callers == 0 || p == l.claim.place {
		l.wake()
	}
	if len(p.callers) == 0 {
		p.awaited = c.why == nil
		l.left(p)
		l.abandon(p, now)
	}
}

// left finds the best place anew if this was the best, and has no caller any more.
func (l *Line) left(p *place) {
	if p == l.top.place {
		l.top.known = false
	}
}

// abandon keeps a place without a caller, if its candidate can come back to it.
func (l *Line) abandon(p *place, now time.Duration) {
	if !p.drawn {
		p.left = now
		l.kept++
		return
	}
	l.remove(p)
	l.bereave(p)
}

// bereave keeps the key of a place that is gone, if no caller knows it and the place may have been
// granted the lease.
func (l *Line) bereave(p *place) {
	if !p.drawn || p.unknown == nil {
		return
	}
	if l.orphans == nil {
		l.orphans = make(map[leadership.CandidateID]leadership.Key)
	}
	l.orphans[p.request.CandidateID] = *p.request.Key
}

// settle answers all callers of a place, and removes it.
func (l *Line) settle(p *place, answer func(*Caller)) {
	if len(p.callers) == 0 {
		l.kept--
	}
	for _, c := range p.callers {
		answer(c)
	}
	l.callers -= len(p.callers)
	p.callers = nil
	l.left(p)
	l.remove(p)
}
