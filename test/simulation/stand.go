package simulation

import (
	"errors"
	"slices"
	"time"

	"regent/leadership"
)

// stand is a model of a line, as the documentation of package line describes it: first come, first
// served, but for a candidate that may have the lease already; and a place is kept for 5 s.
type stand struct{ spots []*spot }

// spot is a candidate's place.
type spot struct {
	candidate leadership.CandidateID
	key       *leadership.Key // nil: no caller can resume it
	callers   int
	since     time.Duration // when the first of them came
	left      time.Duration // when the last of them went

	attempts  int              // so far
	unsettled bool             // the outcome of its last attempt is unknown
	told      leadership.Token // of the lease that it was asked for out of turn
}

// join returns the spot of a caller that comes now.
func (s *stand) join(r leadership.AcquireRequest, now time.Duration) *spot {
	s.spots = slices.DeleteFunc(s.spots, func(p *spot) bool { return p.callers == 0 && now-p.left > 5*time.Second })
	i := slices.IndexFunc(s.spots, func(p *spot) bool {
		return r.Key != nil && p.key != nil && p.candidate == r.CandidateID && *p.key == *r.Key
	})
	if i < 0 {
		i = len(s.spots)
		s.spots = append(s.spots, &spot{candidate: r.CandidateID, key: r.Key})
	}
	p := s.spots[i]
	if p.callers == 0 {
		p.since = now
	}
	p.callers++
	return p
}

// leave notes that a caller at the spot was answered.
func (s *stand) leave(p *spot, err error, now time.Duration) {
	p.callers--
	p.left = now
	kept := errors.Is(err, leadership.LeaseHeld) || errors.Is(err, leadership.StoreUnavailable) || errors.Is(err, leadership.OutcomeUnknown)
	if p.callers == 0 && (p.key == nil || !kept) {
		s.spots = slices.DeleteFunc(s.spots, func(other *spot) bool { return other == p })
	}
}

// first returns the place whose turn it is; nil if the line is empty.
func (s *stand) first() *spot {
	for _, p := range s.spots {
		if p.callers > 0 {
			return p
		}
	}
	return nil
}

// budget limits how often an instance may ask the store for the lines of an election: a few times
// for each change, each attempt that failed and each line that begins, and a few times in the
// shortest lease or the pause between two looks.
type budget struct {
	left     float64
	at       time.Duration
	revision leadership.Revision
}

// The most that may be saved up, and what there is for a change and for a period.
const (
	saved     = 40
	aChange   = 3
	everyTime = 2
)

// spend takes one attempt from the budget, and reports whether there was one.
func (b *budget) spend(now, period time.Duration, newest leadership.Revision) bool {
	b.left += everyTime*float64(now-b.at)/float64(period) + aChange*float64(newest-b.revision)
	b.left = min(b.left, saved) - 1
	b.at, b.revision = now, newest
	return b.left >= 0
}

// inTurn checks that an attempt obeys the order of the line, and its budget. One for a candidate
// that is not eligible is its own call's, which is answered at once.
func (q *queue) inTurn(c *caller) {
	s := q.i.s
	c.spot.attempts++
	if first := q.stand.first(); first != c.spot && !q.outOfTurn(c.spot) && !s.ordered {
		s.truth.accuse(LV, "%s: instance %d asks for %s, and %s came first", q.election, q.i.number, c.spot.candidate, first.candidate)
	}
	if c.agent.eligible() && !s.stands(q.election) && !q.looks(c.spot) && !q.i.budget(q.election).spend(s.w.now, s.plan.pause(), s.truth.reign(q.election).revision) {
		s.truth.accuse(LV, "%s: instance %d asks the store too often", q.election, q.i.number)
	}
}

// look is the last attempt for a successor, without news of the yield that it waits for.
type look struct {
	to    leadership.CandidateID
	token leadership.Token
	at    time.Duration
	count int
}

// How often a line looks: every half a second, for a minute after the successor was named and for
// another after it is ready.
const (
	lookEvery = 500 * time.Millisecond
	maxLooks  = 240
)

// looks reports whether an attempt may be such a look.
func (q *queue) looks(p *spot) bool {
	now := q.i.now()
	s := q.view.Succession(now)
	if q.i.view.Live() || s.To != p.candidate || s.Yielded || s.Left <= 0 {
		return false
	}
	_, token := q.view.Term()
	next := look{s.To, token, now, 1}
	if last := q.look; last.to == next.to && last.token == next.token {
		if now-last.at < lookEvery || last.count == maxLooks {
			return false
		}
		next.count += last.count
	}
	q.look = next
	return true
}

// outOfTurn reports whether an attempt for the spot may come before its turn: when an earlier one
// is unsettled, or once for each lease of its candidate that the instance hears of.
func (q *queue) outOfTurn(p *spot) bool {
	if p.unsettled {
		return true
	}
	leader, token := q.view.Term()
	if p.key == nil || leader != p.candidate || p.told == token {
		return false
	}
	p.told = token
	q.i.budget(q.election).left++
	return true
}

// expectOwn checks in a moment that no caller is left waiting for its own lease: for one that
// leads, by an earlier call with the same key, the line asks the store as soon as its instance can
// know.
func (q *queue) expectOwn() {
	i, s := q.i, q.i.s
	r := s.data.row(q.election).record
	if s.plan.faults.late > 0 || s.truth.skewed || r.LeaderID == "" {
		return
	}
	at := slices.IndexFunc(q.stand.spots, func(p *spot) bool {
		return p.callers > 0 && p.key != nil && p.key.Hash() == r.KeyHash && p.candidate == r.LeaderID
	})
	if at < 0 || !q.stand.spots[at].unsettled && q.view.Leader() != r.LeaderID {
		return
	}
	p, since, alive := q.stand.spots[at], s.w.now, i.alive()
	begun := p.attempts
	s.w.after(promptly, func() {
		idle := alive() && i.lines[q.election] == q && p.attempts == begun && p.callers > 0 && p.since <= i.now()-promptly && !q.asking && !q.failing
		now := s.data.row(q.election).record
		lasts := now.Token == r.Token && now.LeaderID != "" && epoch.Add(s.w.now).Before(s.truth.reign(q.election).end.Add(-s.truth.slack))
		if idle && lasts && i.stalled <= since {
			s.truth.accuse(LV, "%s: %s waits in the line of instance %d since %v for its own lease, of token %d", q.election, p.candidate, i.number, since, r.Token)
		}
	})
}

func (i *instance) budget(e leadership.Election) *budget {
	b, ok := i.budgets[e]
	if !ok {
		b = &budget{left: saved, at: i.s.w.now}
		i.budgets[e] = b
	}
	return b
}

// promptly is the longest time until a line asks for an election that its instance knows to be
// free.
const promptly = time.Second

// expectAttempt checks in a moment that the line has asked, if it should have: it is not empty, and
// the election is free.
func (q *queue) expectAttempt() {
	i, s := q.i, q.i.s
	if s.plan.faults.late > 0 || s.truth.skewed { // an answer that is late makes the line late by as much
		return
	}
	r := s.data.row(q.election).record
	if r.LeaderID != "" || r.Deleted || s.plan.ballot != (leadership.BallotPolicy{}) || s.stands(q.election) { // with a ballot it asks when its turn comes, and a part when the whole has a leader
		return
	}
	if i.newest[q.election] != r.Revision && q.view.Leader() != "" {
		return // it does not know yet, and is looked at once it hears of it
	}
	begun, since, alive := q.begun, s.w.now, i.alive()
	s.w.after(r.LockFor+r.LockFor/500+promptly, func() {
		first := q.stand.first()
		idle := alive() && i.lines[q.election] == q && q.begun == begun && !q.asking && !q.failing && first != nil && first.since <= i.now()-promptly
		if idle && s.mayBar(q.election, first.candidate, 2*promptly) {
			return // it need not ask before the order is over
		}
		if undisturbed := i.view.Live() && i.liveSince <= since && i.stalled <= since; !idle || !undisturbed {
			return
		}
		if now := s.data.row(q.election).record; now.LeaderID == "" && now.Revision == r.Revision && i.newest[q.election] == r.Revision {
			s.truth.accuse(LV, "%s: instance %d knows since %v that it is free, %s stands in line, and the line does not ask", q.election, i.number, since, first.candidate)
		}
	})
}

// expectReleased checks a refusal: a line that is refused because of a lease that it was granted
// itself, under a key that no caller was told, must give that lease back, unless it has just ended.
func (q *queue) expectReleased(err error, given bool) {
	refusal, ok := errors.AsType[*leadership.Error](err)
	if !ok || refusal.Code != leadership.LeaseHeld || refusal.Lease == nil || refusal.Lease.State != leadership.Held || given {
		return
	}
	r := q.i.s.data.row(q.election).record
	c := q.i.drawn[r.KeyHash]
	if r.LeaderID != "" && r.Token == refusal.Lease.Token && c != nil && c.queue == q && c.over && !c.granted {
		q.i.s.truth.accuse(LV, "%s: no caller was told the key of %s, and instance %d does not release it", q.election, r.LeaderID, q.i.number)
	}
}
