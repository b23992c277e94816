package line

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

// Seats sets the seats of the election, as the view has them. The line listens to them, and asks
// when one of them can be granted.
func (l *Line) Seats(all []*view.Election) { l.seats = all }

// open returns when the lease, or a seat, can be granted to a candidate of the line.
func (l *Line) open(now time.Duration) time.Duration {
	if len(l.seats) == 0 {
		return l.election.Open()
	}
	first := never
	for _, s := range l.seats {
		open := s.Open()
		if to, until := s.Assigned(now); to != "" {
			open = max(open, min(until, l.asks(to, now)))
		}
		first = min(first, open)
	}
	return max(l.election.Open(), first)
}

// asks is when the candidate can be asked for: once nothing bars it; never if it does not wait.
func (l *Line) asks(c leadership.CandidateID, now time.Duration) time.Duration {
	at := never
	for p := range l.each() {
		if p.request.CandidateID != c || len(p.callers) == 0 || p.request.Role == leadership.RoleWitness {
			continue
		}
		b := l.bars.of(callerOf(p.request), now)
		if b == nil {
			return 0
		}
		at = min(at, b.until)
	}
	return at
}

// assignee is the place of a candidate to which a seat is assigned that can be granted: it is asked
// for wherever it stands, because no other is granted that seat. nil if there is none, or if the
// store has said when its turn in a ballot comes.
func (l *Line) assignee(now time.Duration) *place {
	for _, s := range l.seats {
		to, _ := s.Assigned(now)
		if to == "" || s.Open() > now {
			continue
		}
		for p := range l.each() {
			if p.request.CandidateID == to && l.mayAsk(p, now) && !(l.ballot.open() && l.ballot.asked == p.candidacy()) {
				return p
			}
		}
	}
	return nil
}

// isAssigned reports whether a seat is assigned to the candidate.
func (l *Line) isAssigned(c leadership.CandidateID, now time.Duration) bool {
	return slices.ContainsFunc(l.seats, func(s *view.Election) bool { to, _ := s.Assigned(now); return to == c })
}

// changed counts what has changed for the line, and putOff what was put off.
func (l *Line) changed() (version, putOff int) {
	version, putOff = l.election.Version(), l.election.PutOff()
	for _, s := range l.seats {
		version, putOff = version+s.Version(), putOff+s.PutOff()
	}
	return version, putOff
}

// seatsChanged says when the head asks after news of a seat, or of the election that has them.
func (l *Line) seatsChanged(now time.Duration) {
	switch open := l.open(now); {
	case open > now:
		l.ballot = ballot{}
		l.askAtEnd(open)
	case l.ballot.open():
		l.askAt(max(l.ballot.until, now))
	default:
		l.askAt(now + l.common.jitter(eventSpread))
	}
	known := l.election.Last()
	if l.election.Event() != nil || known != nil && known.Config.Seats != len(l.seats) { // it may have other seats now
		l.askAt(min(l.next, now+l.common.jitter(soon)))
	}
}

// along are the best places behind the one that is asked for, one for each further seat that is
// free: their candidates bid with its.
func (l *Line) along(head *place, now time.Duration) (best []*place) {
	free := l.free(now)
	if free < 2 || !l.rule.policy.HasBallot() {
		return nil
	}
	for p := range l.each() {
		if p.request.CandidateID == head.request.CandidateID || !l.mayAsk(p, now) || l.class(p) != eligible {
			continue
		}
		at := len(best)
		for at > 0 && l.precedes(p, best[at-1]) {
			at--
		}
		if best = slices.Insert(best, at, p); len(best) == free {
			best = best[:free-1]
		}
	}
	return best
}

// assignsSeat reports whether an order of one of the line's seats is behind the refusal. It bars
// no candidate from the others.
func (l *Line) assignsSeat(refusal *leadership.Error) bool {
	return refusal.Cause.Code == leadership.ReasonAssigned && refusal.Lease.Election != l.election.Name()
}

// free is how many seats can be granted to any candidate.
func (l *Line) free(now time.Duration) (n int) {
	for _, s := range l.seats {
		if to, _ := s.Assigned(now); to == "" && s.Open() <= now {
			n++
		}
	}
	return n
}

// standbys are the candidates of the places.
func standbys(places []*place, now time.Duration) (all []leadership.Standby) {
	for _, p := range places {
		all = append(all, leadership.Standby{CandidateID: p.request.CandidateID, Candidacy: p.request.Candidacy, Waited: now - p.since})
	}
	return all
}

// seating knows the seats of elections from the view.
type seating struct {
	leadership.Seating
	q      *Queue
	runner *runner // nil for candidates that do not stand in line
}

func (s *seating) begin(q *Queue, r *runner) {
	*s = seating{leadership.Seating{Known: s.known, Refused: s.refused}, q, r}
}

// known is Seating.Known. Of the seats that the view does not know, it asks.
func (s *seating) known(ctx context.Context, whole leadership.Lease) ([]leadership.Seat, error) {
	all := make([]seat, whole.Config.Seats)
	var unknown sync.WaitGroup
	errs := make([]error, len(all))
	s.q.c.Hub.Learn(&whole, view.Read, longAgo)
	s.q.c.Hub.View(func(v *view.View, now time.Duration) {
		if s.runner != nil {
			s.runner.listen(whole)
		}
		for i := range all {
			all[i] = s.know(v, whole.Election.Seat(i+1), now)
		}
	})
	for i := range all {
		if all[i].state == unsure {
			unknown.Go(func() { errs[i] = s.read(ctx, &all[i]) })
		}
	}
	unknown.Wait()
	known := make([]leadership.Seat, 0, len(all))
	for _, k := range all {
		if k.state == sure {
			known = append(known, k.Seat)
		}
	}
	if len(known) > 0 {
		return known, nil
	}
	return nil, cmp.Or(errs...)
}

// longAgo is when the store was asked for what may be older than anything that was heard.
const longAgo time.Duration = 0

func (s *seating) refused(refusal *leadership.Error) {
	s.q.c.Hub.Learn(refusal.Lease, view.Read, longAgo)
}

// seat is a seat, and whether it is known.
type seat struct {
	leadership.Seat
	state seatState
}

type seatState int

const (
	unsure seatState = iota
	sure
	closed // it is deleted, or cannot be read
)

// know is what the view has of a seat.
func (s *seating) know(v *view.View, name leadership.Election, now time.Duration) seat {
	k := seat{Seat: leadership.Seat{Election: name}}
	e := v.Find(name)
	if e == nil || e.Last() == nil && e.Event() == nil {
		return k
	}
	k.Leader, k.Left = e.Leader(), max(e.Open()-now, 0)
	k.For, _ = e.Assigned(now)
	if l := e.Lease(); l != nil {
		k.Since = l.AcquiredAt
	} else if k.Leader != "" {
		k.Since = e.Event().At
	}
	if k.Left > 0 && (k.Leader != "" || e.Lease() != nil) || k.Left == 0 && k.Leader == "" && v.Live() {
		k.state = sure
	}
	return k
}

// read asks for a seat.
func (s *seating) read(ctx context.Context, k *seat) error {
	reading, err := s.q.c.Hub.Read(ctx, leadership.ReadRequest{Election: k.Election})
	k.state = sure
	switch {
	case errors.Is(err, leadership.NotFound):
		k.Leader, k.Left = "", 0
		if refusal, ok := errors.AsType[*leadership.Error](err); ok && refusal.Lease != nil {
			k.state = closed
		}
		return nil
	case err != nil:
		k.state = closed
		return err
	}
	k.Leader, k.Since, k.Left = reading.LeaderID, reading.AcquiredAt, reading.ExpiresIn+reading.LockedFor
	k.For = reading.AssignedTo
	return nil
}

// listen lets the line listen to the seats that the election has. Call it from within View.
func (r *runner) listen(whole leadership.Lease) {
	n := whole.Config.Seats
	if n == len(r.seats) {
		return
	}
	for _, e := range r.seats[min(n, len(r.seats)):] {
		r.q.common.View.Unwait(e, r.wake)
	}
	r.seats = r.seats[:min(n, len(r.seats))]
	for i := len(r.seats); i < n; i++ {
		r.seats = append(r.seats, r.q.common.View.Wait(whole.Election.Seat(i+1), r.wake))
	}
	r.line.Seats(r.seats)
}
