package simulation

import (
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"regent/leadership"
	"regent/leadership/fence"
)

// simulation is one run.
type simulation struct {
	w          *timeline
	plan       plan
	data       *data
	truth      *truth
	bus        bus
	names      []leadership.Election
	instances  []*instance
	agents     []*agent
	places     map[leadership.Election]*place
	figures    Figures
	keys       uint64
	calm       bool // without faults
	seats      int  // that the whole has at most; 0: there is none
	seatBallot leadership.BallotPolicy
	closed     bool    // the run is over
	record     *record // nil: nothing is recorded
}

// Config is what to run.
type Config struct {
	Seed   uint64
	Leases int       // how many leases, one after the other, the run is long: at least as long as it takes to settle at the end
	Log    io.Writer // gets a line for each thing that happens; nil for none
	// Record asks for the Recording. Such a run has no doubled requests: two calls with one id
	// could not be told apart.
	Record bool
}

// Run runs the elections, agents and faults that the seed draws; the last minutes have no faults.
func Run(c Config) Result {
	s := newSimulation(c)
	defer s.w.end()
	drawn := s.plan.String()
	s.begin()
	quiet := s.settling() + 4*s.patience() + time.Minute
	s.w.run(time.Duration(c.Leases) * s.plan.lease)
	s.heal()
	s.w.run(s.w.now + s.settling())
	s.record.unsettled()
	s.watch()
	s.w.run(s.w.now + quiet - s.settling())
	s.close()
	for _, a := range s.agents {
		a.ceases()
		a.willing = false
		a.life++
	}
	s.closed = true
	if s.record != nil {
		s.w.run(s.w.now + s.patience() + relayTime) // until all has been announced
		for _, e := range s.stored() {
			s.observe(e, true)
		}
		s.w.run(s.w.now + time.Second)
	}
	s.figures.Elections = s.w.now * time.Duration(s.plan.elections)
	s.figures.Changes = s.truth.changes
	return Result{
		Seed: c.Seed, Plan: drawn, Figures: s.figures, Digest: s.w.digest, Violations: s.truth.violations,
		Recording: s.record.finish(s.history()), Guard: s.data.guard(),
	}
}

func newSimulation(c Config) *simulation {
	w := newTimeline(c.Seed, c.Log)
	s := &simulation{w: w, plan: w.draw(), places: make(map[leadership.Election]*place)}
	if c.Record {
		s.record = &record{w: w, wait: s.plan.wait, skewed: s.plan.faults.storeLeaps}
		s.plan.faults.doubled = 0
	}
	s.seats, s.seatBallot = drawSeats(c.Seed)
	s.plan.faults.seats = s.seats > 0
	ordered := s.plan.faults.people || s.plan.policy != (leadership.TermPolicy{})
	s.calm = s.plan.faults.none() && !s.plan.faults.operators && !ordered && !s.plan.ballot.Preempt && s.plan.handing == (handing{})
	w.tell("seed %d: %v", c.Seed, s.plan)
	s.truth = &truth{
		w: w, figures: &s.figures, skewed: s.plan.faults.storeLeaps, believers: s.of, replaced: make(map[leadership.EventID]time.Duration),
		elections: make(map[leadership.Election]*reign), grants: make(map[leadership.KeyHash]leadership.Token),
		keys:         make(map[tokenOf]leadership.KeyHash),
		acknowledged: make(map[string]bool), unlocked: make(map[tokenOf]bool), lasted: make(map[tokenOf]time.Time),
	}
	s.data = &data{w: w, kind: s.plan.store, faults: &s.plan.faults, figures: &s.figures, truth: s.truth, elections: make(map[leadership.Election]*row)}
	s.truth.slack = s.data.guard()
	s.bus = bus{s: s, published: make(map[leadership.Election]leadership.Revision)}
	for n := range s.plan.elections {
		s.names = append(s.names, s.plan.name(n, leadership.Election(fmt.Sprint("election-", n+1))))
	}
	return s
}

// clock draws a clock.
func (s *simulation) clock() clock {
	c := clock{rate: exact, ahead: s.w.upTo(24 * time.Hour)}
	switch {
	case !s.plan.drift:
	case s.w.chance(0.3):
		c.rate -= exact / leadership.Drift // as slow as may be
	case s.w.chance(0.2):
		c.rate += s.w.random.Int64N(exact) // up to twice as fast
	default:
		c.rate += s.w.random.Int64N(exact/1000) - exact/2000
	}
	return c
}

// key draws a new key.
func (s *simulation) key() leadership.Key {
	var k leadership.Key
	s.keys++
	binary.BigEndian.PutUint64(k[:], s.keys)
	return k
}

// length draws the lease duration of a request; 0 for the configured one.
func (s *simulation) length() time.Duration {
	if !s.plan.lengths {
		return 0
	}
	return []time.Duration{0, s.plan.lease / 2, s.plan.lease * 3 / 4, s.plan.lease}[s.w.random.IntN(4)]
}

// untilEnd is how long the lease lasts unless it is renewed.
func (s *simulation) untilEnd(e leadership.Election) time.Duration {
	return s.truth.reign(e).end.Sub(s.data.clock())
}

// any draws an instance.
func (s *simulation) any() *instance { return s.instances[s.w.random.IntN(len(s.instances))] }

// of returns the agents of an election.
func (s *simulation) of(e leadership.Election) (of []*agent) {
	for _, a := range s.agents {
		if a.election == e {
			of = append(of, a)
		}
	}
	return of
}

// place is where the leaders of an election write.
type place struct {
	s      *simulation
	mark   fence.Mark
	newest leadership.Token
}

func (s *simulation) place(e leadership.Election) *place {
	p, ok := s.places[e]
	if !ok {
		p = &place{s: s}
		s.places[e] = p
	}
	return p
}

// write lets a write in, or not.
func (p *place) write(w fence.Mark) {
	mark, err := p.mark.Admit(w)
	if err != nil {
		p.s.figures.Refused++
		return
	}
	if w.Token < p.newest {
		p.s.truth.accuse(FT, "%s: a write with token %d was let in after one with %d", w.Election, w.Token, p.newest)
	}
	p.mark, p.newest = mark, w.Token
}
