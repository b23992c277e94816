package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/test/checker"
)

// whole is the election that has seats, in the runs with one, and gates are all its seats.
const (
	whole = leadership.Election("gpu")
	gates = leadership.Election("gpu.*")
)

// drawSeats draws how many seats the whole has at most, and who should lead at them; 0 for a run
// without one. It has a source of its own: other runs are as they were.
func drawSeats(seed uint64) (seats int, b leadership.BallotPolicy) {
	r := rand.New(rand.NewPCG(seed, 0x5ea75))
	if r.IntN(4) > 0 {
		return 0, b
	}
	seats = 2 + r.IntN(2)
	if r.IntN(3) > 0 {
		all := leadership.Strategies()
		b = leadership.BallotPolicy{Strategy: all[r.IntN(len(all))], Window: leadership.DefaultWindow}
	}
	return seats, b
}

// seated are the whole, its seats, and the halts.
func (s *simulation) seated() (all []leadership.Election) {
	if s.seats == 0 {
		return nil
	}
	all = append(all, leadership.HaltsElection, whole)
	for n := range s.seats {
		all = append(all, whole.Seat(n+1))
	}
	return all
}

// stored are all elections that the store may have.
func (s *simulation) stored() []leadership.Election { return append(s.seated(), s.names...) }

// seat starts the candidates for the seats, two more than there are, and an operator.
func (s *simulation) seat() {
	if s.seats == 0 {
		return
	}
	s.setSeats(s.seats)
	for n := range s.seats + 2 {
		a := &agent{s: s, name: leadership.CandidateID(agentNames[n]), election: whole, seated: true, clock: s.clock()}
		a.candidacy = leadership.Candidacy{Priority: int64(n % 3), Load: int64(n % 2)}
		s.agents = append(s.agents, a)
		s.w.after(s.w.upTo(10*time.Second), a.begin)
	}
	s.repeatedly(2*s.plan.lease, func() bool { return s.plan.faults.seats }, s.usher)
	for _, e := range s.seated()[1:] {
		s.repeatedly(5*s.plan.lease, func() bool { return !s.closed }, func() { s.observe(e, true) })
	}
}

// usher does what an operator of seats may do.
func (s *simulation) usher() {
	o := leadership.Order{Reason: "it has to be", Actor: "olga"}
	d := max(s.w.about(2*s.plan.lease), leadership.MinOrder).Truncate(time.Millisecond)
	switch s.w.random.IntN(9) {
	case 8:
		seat := whole.Seat(1 + s.w.random.IntN(s.seats))
		o.Kind, o.CandidateID, o.For = leadership.OrderAssign, leadership.CandidateID(agentNames[s.w.random.IntN(s.seats+2)]), d
		s.giveAgain(seat, o, 3)
		return
	case 0, 1, 2:
		s.setSeats(1 + s.w.random.IntN(s.seats))
		return
	case 3:
		o.Kind, o.For, o.Mode = leadership.OrderPause, d, leadership.PauseDrain
		if s.w.chance(0.5) {
			o.Mode = leadership.PauseFreeze
		}
	case 4:
		o.Kind = leadership.OrderResume
	case 5, 6:
		o.Kind, o.For = leadership.OrderHalt, d+8*time.Second // until all must have heard, and longer
	default:
		o.Kind = leadership.OrderUnhalt
	}
	if !o.Kind.Halts() {
		s.giveAgain(whole, o, 3)
		return
	}
	s.w.tell("%s: %s orders %s for %v", gates, o.Actor, o.Kind, o.For)
	o = o.In(gates)
	s.operator(o.Record(), checker.Call{Verb: checker.Order, Order: o}, o, func(error) {})
}

// setSeats repeats the call until all seats have heard.
func (s *simulation) setSeats(n int) {
	c := leadership.Config{LeaseDuration: s.plan.lease, Seats: n, Ballot: s.seatBallot}
	s.configures(whole, c, func() { s.setSeats(n) })
}

// haltAge is how old the halts may be by which a seat is granted. The instance's clock may be slow.
const haltAge = cacheExpiry - 10*time.Millisecond

// halts returns the halts, as they were at an instant of the instance's clock, as package instance
// does.
func (i *instance) halts(ctx context.Context) (all leadership.Overrides, asked time.Duration, err error) {
	now := i.now()
	reading, err := i.read(ctx, leadership.HaltsElection, false)
	if errors.Is(err, leadership.NotFound) {
		err = nil
	}
	return reading.Overrides, now - reading.Age, err
}

// grantSeat grants a seat unless it is halted, as package instance does: a grant that took so long
// that there may be another halt by now is given back.
func (i *instance) grantSeat(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	halts, asked, err := i.halts(ctx)
	if err != nil {
		return leadership.Grant{}, err
	}
	r.InLine.Halts = halts
	g, err := i.service.Acquire(ctx, r)
	if reasonOf(err) == leadership.ReasonHalted {
		i.s.figures.Halted++
	}
	if err != nil || i.now()-asked <= haltAge || !g.AcquiredAt.Equal(g.LastHeartbeat) {
		return g, err
	}
	if halts, _, err = i.halts(ctx); err == nil && len(halts.Halting(g.Election, g.ReadAt)) == 0 {
		return g, nil
	}
	i.service.GiveBack(ctx, g)
	return leadership.Grant{}, errors.Join(errUnknown, err)
}

// seatedBy counts grants of seats, and terms that have ended because there are fewer.
func (t *truth) seatedBy(now rule.Record, e leadership.Event) {
	switch {
	case now.Standing.Seat == 0:
	case e.Type == leadership.EventAcquired:
		t.figures.Seated++
	case e.PreviousLeaderID != "" && e.ReadDetail().EndsBecause == leadership.EndsSeats:
		t.figures.Lowered++
	}
}
