package checker

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// step is something that was done to one election, or seen of it, at one moment of the store's
// time.
type step struct {
	call   Call               // without a verb: no recorded call did it
	answer *leadership.Lease  // what the caller was shown afterwards; nil if it was not told
	at     time.Time          // the store's time; zero if the answer does not tell it
	events []leadership.Event // that it wrote to the history
	span   span               // when it was done, on the recording's clock
	exact  bool               // the end that a hand-over sets is as its event says
	after  int                // so many steps come before it, by the store's time
}

// String names the step in a report and in a picture.
func (s step) String() string {
	text := "by itself"
	if s.call.Verb != "" {
		text = s.call.String()
	}
	for _, e := range s.events {
		text += "; " + shown(e)
	}
	return text
}

// search is the search for an order of the steps of one election.
type search struct {
	election leadership.Election
	calls    []Call
	groups   []group
	commits  []commit
	end      time.Duration // later than all
	steps    []step
	// heartbeats that may have been committed and left no event
	lost []Call
	// leases without any recorded call, with their length
	foreign map[leadership.Token]time.Duration
	back    time.Duration // by how much the store's time may go back
}

// group is the events of one transaction.
type group struct {
	events []leadership.Event
	taken  bool
}

func (g group) last() leadership.Event { return g.events[len(g.events)-1] }

// groupsOf splits a history into transactions: the end of a lease that ran out is written together
// with what follows, a new epoch with the approval that it comes from, and the end of a term that
// was handed over with the grant to the successor.
func groupsOf(history []leadership.Event) []group {
	var groups []group
	for _, e := range history {
		n := len(groups)
		if n > 0 {
			if last := groups[n-1].last(); together(last, e) && last.RequestID == e.RequestID && last.At.Equal(e.At) {
				groups[n-1].events = append(groups[n-1].events, e)
				continue
			}
		}
		groups = append(groups, group{events: []leadership.Event{e}})
	}
	return groups
}

// together reports whether one transaction may write both.
func together(a, b leadership.Event) bool {
	switch a.Type {
	case leadership.EventApproved:
		return b.Type == leadership.EventEpoch
	case leadership.EventReleased:
		return handedTo(a) != "" && b.Type == leadership.EventAcquired
	}
	return ranOut(a)
}

// newSearch finds out what became of each call.
func newSearch(e leadership.Election, calls []Call, history []leadership.Event, commits []commit) *search {
	p := &search{election: e, groups: groupsOf(history), commits: commits, foreign: make(map[leadership.Token]time.Duration)}
	for i, c := range calls {
		p.calls = append(p.calls, c.normal(i))
		p.end = max(p.end, c.Asked+1)
		if c.Answered != Forever {
			p.end = max(p.end, c.Answered+1)
		}
	}
	p.tell()
	p.resolve()
	p.rest()
	return p
}

// normal is the call with instants that can be compared with ==, and with a key: the server chose
// one for a caller that sent none.
func (c Call) normal(i int) Call {
	if c.Verb == Acquire && c.Key == (leadership.KeyHash{}) {
		c.Key = sha256.Sum256(fmt.Append(nil, "call ", i))
	}
	if c.Answer != nil {
		a := *c.Answer
		a.LastHeartbeat, a.LeaseExpiration, a.ReadAt = a.LastHeartbeat.UTC().Round(0), a.LeaseExpiration.UTC().Round(0), a.ReadAt.UTC().Round(0)
		c.Answer = &a
	}
	return c
}

// tell takes the calls that were answered, each with the events that it made.
func (p *search) tell() {
	for _, c := range p.calls {
		s := step{call: c, answer: c.Answer, span: span{c.Asked, c.Answered}}
		switch {
		// the time is not known
		case c.refused() && c.Code == leadership.NotFound && c.Answer == nil:
		case !c.done() && !c.refused(), !c.shows():
			continue
		default:
			s.at = c.at()
		}
		if c.done() {
			s.events = p.claim(c, s.at)
		}
		p.steps = append(p.steps, s)
	}
}

// claim is the transaction that an answer shows.
func (p *search) claim(c Call, at time.Time) []leadership.Event {
	i, _ := slices.BinarySearchFunc(p.groups, c.Answer.Revision, func(g group, r leadership.Revision) int { return int(g.last().Revision - r) })
	if i == len(p.groups) || p.groups[i].taken {
		return nil
	}
	g := &p.groups[i]
	if last := g.last(); last.Revision != c.Answer.Revision || last.RequestID != c.Request || !last.At.Equal(at) || !c.fits(last) {
		return nil
	}
	g.taken = true
	return g.events
}

// fits reports whether the call can have made a transaction that ends with the event.
func (c Call) fits(e leadership.Event) bool {
	if c.Verb == Order {
		return slices.Contains(eventsOf[c.Order.Kind], e.Type)
	}
	return slices.Contains(eventsBy[c.Verb], e.Type)
}

// eventsBy are the events with which a call may end that has no rule of its own.
var eventsBy = map[Verb][]leadership.EventType{
	Acquire:   {leadership.EventAcquired, leadership.EventUpdated},
	Judge:     {leadership.EventJudged},
	Release:   {leadership.EventReleased, leadership.EventExpired},
	Configure: {leadership.EventConfigured, leadership.EventRecreated},
	Delete:    {leadership.EventDeleted},
	Unlock:    {leadership.EventUnlocked},
	HandOver:  {leadership.EventHandingOver},
	Ready:     {leadership.EventReady},
	Serving:   {leadership.EventServing},
	Yield:     {leadership.EventYielded},
}

// eventsOf are the events with which an order may end.
var eventsOf = map[leadership.OrderKind][]leadership.EventType{
	leadership.OrderAssign:  {leadership.EventAssigned},
	leadership.OrderEvict:   {leadership.EventEvicted},
	leadership.OrderPause:   {leadership.EventPaused},
	leadership.OrderResume:  {leadership.EventResumed},
	leadership.OrderBan:     {leadership.EventBanned},
	leadership.OrderApprove: {leadership.EventApproved, leadership.EventEpoch},
	leadership.OrderLift:    {leadership.EventLifted},
	leadership.OrderHalt:    {leadership.EventHalted},
	leadership.OrderUnhalt:  {leadership.EventLifted},
}

// resolve looks up in the history the calls whose outcome is unknown, or that a server may have
// made more than once; and keeps the heartbeats of which it knows nothing. A grant that was over
// before its answer is asked for again, so that one call may have several.
func (p *search) resolve() {
	byRequest := make(map[string][]*group)
	for i := range p.groups {
		if g := &p.groups[i]; !g.taken && g.last().RequestID != "" {
			byRequest[g.last().RequestID] = append(byRequest[g.last().RequestID], g)
		}
	}
	for _, c := range p.calls {
		if c.refused() && c.Waited == 0 && (c.Verb != Acquire || c.Code != leadership.LeaseLost) {
			continue // a late acquire: what it changed of the lease was written all the same
		}
		applied := false
		for _, g := range byRequest[c.Request] {
			if !g.taken && c.fits(g.last()) {
				g.taken, applied = true, true
				c := c
				c.Code, c.Because, c.Answer = "", "", nil
				if p.add(step{call: c, events: g.events}, c.Asked); !begins(g.last()) {
					break
				}
			}
		}
		if (!applied || c.Verb == Acquire) && c.mayBeat(c.Candidate, c.Token) { // a grant may have been asked for twice
			p.lost = append(p.lost, c)
		}
	}
}

// rest takes what no recorded call has done.
func (p *search) rest() {
	for i := range p.groups {
		if g := &p.groups[i]; !g.taken {
			if e := g.last(); begins(e) {
				p.foreign[e.Token] = p.durationOf(e)
			}
			p.add(step{events: g.events}, math.MinInt64)
		}
	}
}

// durationOf is the length of the lease that began with the event: as an answer shows it, or as it
// was asked for by a call that waited and was granted before; 0 for the election's.
func (p *search) durationOf(e leadership.Event) time.Duration {
	for _, c := range p.calls {
		if a := c.Answer; a != nil && a.Token == e.Token && a.State == leadership.Held {
			return a.LeaseDuration
		}
	}
	for _, c := range p.calls {
		if c.Request == e.RequestID {
			return c.Lease
		}
	}
	return 0
}

// add takes a step that only the history shows. It was done before any answer showed its revision,
// and not before it was asked for.
func (p *search) add(s step, asked time.Duration) {
	last := s.events[len(s.events)-1]
	at := p.commits[last.Revision-1]
	from, until := max(asked, at.earliest), min(at.latest, p.end)
	s.at, s.span = last.At.UTC().Round(0), span{from, max(from, until)}
	p.steps = append(p.steps, s)
}

// unconfirmed is how many heartbeats of the lease may have been committed without an answer, up to
// a moment of the recording.
func (p *search) unconfirmed(r rule.Record, by time.Duration) int {
	if _, foreign := p.foreign[r.Token]; foreign {
		return math.MaxInt
	}
	n := 0
	for _, c := range p.lost {
		if c.Asked <= by && c.Key.Equal(r.KeyHash) && c.mayBeat(r.LeaderID, r.Token) {
			n++
		}
	}
	return n
}
