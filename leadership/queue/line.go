package queue

import (
	"container/list"
	"iter"
	"slices"
	"time"

	"regent/leadership"
)

// keep is for how long a place without a caller is kept for the candidate to come back to.
const keep = 5 * time.Second

// line is where the candidates for one election stand.
type line struct {
	q        *Queue
	election leadership.Election
	wake     chan struct{} // the runner: there is something to do sooner than it knows
	hearing  hearing

	// Queue.mu guards all below.

	places  list.List                                 // of *place, in the order in which they were taken
	named   map[identity]*place                       // those with a key of the candidate's own
	callers int                                       // in all places
	kept    int                                       // places without a caller
	asking  *place                                    // the store is being asked for it
	orphans map[leadership.CandidateID]leadership.Key // told to nobody, and perhaps granted the lease by an attempt that nobody knows the end of

	known    known
	next     time.Duration // when the head asks
	poll     time.Duration // when it asks if the hub is not live and it has not asked before
	news     bool          // something was learnt since the attempt under way began
	failures failures
}

// place is where a candidate stands.
type place struct {
	line    *line
	at      *list.Element
	request leadership.AcquireRequest
	drawn   bool          // the key is known to the queue alone
	callers []*caller     // several if a client has asked again while its first call was waiting
	left    time.Duration // when the last caller went
	unknown error         // of the last attempt, if nobody knows what it did
}

// identity is what a place is found by.
type identity struct {
	candidate leadership.CandidateID
	key       leadership.Key
}

// join puts the caller in line. Whoever is the first begins a line, and the store is asked for it whatever happens meanwhile.
func (q *Queue) join(c *caller, r leadership.AcquireRequest) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if cause := q.closed(); cause != nil {
		return cause
	}
	l, ok := q.lines[r.Election]
	if !ok {
		l = &line{q: q, election: r.Election, wake: make(chan struct{}, 1), named: make(map[identity]*place)}
		q.lines[r.Election] = l
	}
	c.place = l.place(r)
	c.place.callers = append(c.place.callers, c)
	l.callers++
	if !ok {
		l.asking = c.place
		go l.run()
	} else if l.callers == 1 {
		signal(l.wake)
	}
	return nil
}

// place finds the candidate's place, or gives it one at the end.
func (l *line) place(r leadership.AcquireRequest) *place {
	if r.Key == nil {
		r.Key = new(leadership.NewKey())
		return l.add(&place{request: r, drawn: true})
	}
	id := identity{r.CandidateID, *r.Key}
	p, ok := l.named[id]
	if ok && p.forfeit(l.q.c.Now()) {
		l.forget(p)
		ok = false
	}
	if !ok {
		p = l.add(&place{})
		l.named[id] = p
	} else if len(p.callers) == 0 {
		l.kept--
	}
	p.request = r
	return p
}

func (l *line) add(p *place) *place {
	p.line, p.at = l, l.places.PushBack(p)
	return p
}

// remove takes a place out of the line.
func (l *line) remove(p *place) {
	l.places.Remove(p.at)
	if !p.drawn {
		delete(l.named, identity{p.request.CandidateID, *p.request.Key})
	}
}

// forfeit says whether nobody has come back to the place in time.
func (p *place) forfeit(now time.Duration) bool { return len(p.callers) == 0 && now-p.left > keep }

// forget removes a place without a caller.
func (l *line) forget(p *place) {
	l.kept--
	l.remove(p)
}

// forgetForfeit removes the places to which nobody has come back in time; all without a caller if the queue is closed.
func (l *line) forgetForfeit(now time.Duration, closed bool) {
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
func (l *line) each() iter.Seq[*place] {
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

// head is the first place with a caller; nil if there is none.
func (l *line) head() *place {
	for p := range l.each() {
		if len(p.callers) > 0 {
			return p
		}
	}
	return nil
}

// dismiss answers a caller who leaves.
func (l *line) dismiss(c *caller) {
	p := c.place
	c.refused(l.parting(c))
	p.callers = slices.DeleteFunc(p.callers, func(other *caller) bool { return other == c })
	if l.callers--; l.callers == 0 {
		signal(l.wake)
	}
	if len(p.callers) == 0 {
		l.abandon(p)
	}
}

// abandon keeps a place without a caller, if anybody can come back to it.
func (l *line) abandon(p *place) {
	if !p.drawn {
		p.left = l.q.c.Now()
		l.kept++
		return
	}
	l.remove(p)
	if p.unknown == nil {
		return
	}
	if l.orphans == nil {
		l.orphans = make(map[leadership.CandidateID]leadership.Key)
	}
	l.orphans[p.request.CandidateID] = *p.request.Key
}

// settle answers all callers of a place, and removes it.
func (l *line) settle(p *place, answer func(*caller)) {
	if len(p.callers) == 0 {
		l.kept--
	}
	for _, c := range p.callers {
		answer(c)
	}
	l.callers -= len(p.callers)
	p.callers = nil
	l.remove(p)
}
