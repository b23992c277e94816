package line

import (
	"cmp"
	"context"
	"errors"
	"hash/crc32"
	"slices"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

// Seats says which seats the election has, as the view knows them. The line listens to them: it
// asks when one of them may be had.
func (l *Line) Seats(all []*view.Election) { l.seats = all }

// open is when asking for the lease, or for any seat, may help.
func (l *Line) open() time.Duration {
	if len(l.seats) == 0 {
		return l.election.Open()
	}
	first := never
	for _, s := range l.seats {
		first = min(first, s.Open())
	}
	return max(l.election.Open(), first)
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
	open := l.open()
	if open > now {
		l.askAtEnd(open)
	} else {
		l.askAt(now + l.common.jitter(eventSpread))
	}
	known := l.election.Last()
	if l.election.Event() != nil || known != nil && known.Config.Seats != len(l.seats) { // it may have other seats now
		l.askAt(min(l.next, now+l.common.jitter(soon)))
	}
}

// seating knows of seats what the view does.
type seating struct {
	leadership.Seating
	q      *Queue
	runner *runner // nil for candidates that do not stand in line
}

func (s *seating) begin(q *Queue, r *runner) {
	*s = seating{leadership.Seating{Order: s.order, Refused: s.refused}, q, r}
}

// order is Seating.Order. What is not known is read.
func (s *seating) order(ctx context.Context, whole leadership.Lease, by leadership.CandidateID) ([]leadership.Election, error) {
	known := make([]seat, whole.Config.Seats)
	var unknown sync.WaitGroup
	errs := make([]error, len(known))
	s.q.c.Hub.Learn(whole, view.Read, longAgo)
	s.q.c.Hub.View(func(v *view.View, now time.Duration) {
		if s.runner != nil {
			s.runner.listen(whole)
		}
		for i := range known {
			known[i] = s.know(v, whole.Election.Seat(i+1), now)
		}
	})
	for i := range known {
		if known[i].state == unsure {
			unknown.Go(func() { errs[i] = s.read(ctx, &known[i]) })
		}
	}
	unknown.Wait()
	var own, free []leadership.Election
	var first seat
	for _, k := range known {
		switch {
		case k.state == taken && k.leader == by:
			own = append(own, k.name)
		case k.state == vacant:
			free = append(free, k.name)
		case k.state == taken && (first.name == "" || k.left < first.left):
			first = k
		}
	}
	if n := len(free); n > 0 { // candidates begin at different ones, and each at the same again
		at := crc32.ChecksumIEEE([]byte(by)) % uint32(n)
		free = slices.Concat(free[at:], free[:at])
	}
	if own = append(own, free...); first.name != "" {
		own = append(own, first.name)
	}
	if len(own) > 0 {
		return own, nil
	}
	return nil, cmp.Or(errs...)
}

// longAgo is when the store was asked for what may be older than anything that was heard.
const longAgo time.Duration = 0

func (s *seating) refused(refusal *leadership.Error) {
	s.q.c.Hub.Learn(*refusal.Lease, view.Read, longAgo)
}

// seat is what is known of one.
type seat struct {
	name   leadership.Election
	state  seatState
	leader leadership.CandidateID
	left   time.Duration // until it may be had
}

type seatState int

const (
	unsure seatState = iota
	vacant
	taken
	closed // it is deleted, or cannot be read
)

// know is what the view has of a seat.
func (s *seating) know(v *view.View, name leadership.Election, now time.Duration) seat {
	e := v.Find(name)
	if e == nil || e.Last() == nil && e.Event() == nil {
		return seat{name: name}
	}
	k := seat{name: name, leader: e.Leader(), left: max(e.Open()-now, 0)}
	switch {
	case k.left > 0 && (k.leader != "" || e.Lease() != nil):
		k.state = taken
	case k.left == 0 && k.leader == "" && v.Live():
		k.state = vacant
	}
	return k
}

// read asks for a seat.
func (s *seating) read(ctx context.Context, k *seat) error {
	reading, err := s.q.c.Hub.Read(ctx, leadership.ReadRequest{Election: k.name})
	switch {
	case errors.Is(err, leadership.NotFound):
		k.state = vacant
		if refusal, ok := errors.AsType[*leadership.Error](err); ok && refusal.Lease != nil {
			k.state = closed
		}
		return nil
	case err != nil:
		k.state = closed
		return err
	}
	k.leader, k.left = reading.LeaderID, reading.ExpiresIn+reading.LockedFor
	if k.state = taken; k.left == 0 {
		k.state = vacant
	}
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
