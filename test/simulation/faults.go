package simulation

import (
	"errors"
	"strings"
	"time"

	"regent/leadership"
	"regent/test/checker"
)

// begin starts all agents and instances, and the faults.
func (s *simulation) begin() {
	for n := range s.plan.instances {
		s.instances = append(s.instances, s.newInstance(n))
	}
	for _, e := range s.names {
		s.configure(e, s.plan.lockDelay)
		for n := range s.plan.agents {
			a := &agent{s: s, name: leadership.CandidateID(agentNames[n]), election: e, clock: s.clock()}
			a.keyless = a.clock.rate <= exact+exact/leadership.Drift && s.w.chance(s.plan.keyless) // else it would not wait for its answers
			if s.plan.margins {
				a.margin = s.w.upTo(s.plan.shortestTrial() / 10).Truncate(time.Millisecond)
			}
			a.stands(n)
			s.agents = append(s.agents, a)
			s.w.after(s.w.upTo(10*time.Second), a.begin)
		}
	}
	s.seat()
	s.bus.relay()
	f := &s.plan.faults
	for _, a := range s.agents {
		s.repeatedly(s.plan.mean, func() bool { return f.pauses }, func() { s.pause(a) })
		s.repeatedly(s.plan.mean, func() bool { return f.crashes }, func() { s.figures.Faults++; a.crash() })
		s.repeatedly(s.plan.mean, func() bool { return f.leaps }, func() { s.figures.Faults++; a.clock.ahead += s.w.upTo(2 * s.plan.lease) })
	}
	for _, i := range s.instances {
		s.repeatedly(s.plan.mean, func() bool { return f.stalls }, func() { s.figures.Faults++; i.stalled = max(i.stalled, s.w.now+s.w.about(s.plan.lease)) })
		s.repeatedly(s.plan.mean, func() bool { return f.deaths }, func() { s.figures.Faults++; s.kill(i) })
		s.repeatedly(s.plan.mean, func() bool { return f.deaf }, func() { s.deafen(i) })
	}
	s.repeatedly(s.plan.mean, func() bool { return f.storeLeaps }, func() { s.figures.Faults++; s.data.ahead += s.w.upTo(2 * s.plan.lease) })
	for _, e := range s.names {
		s.repeatedly(s.plan.mean, func() bool { return f.operators }, func() { s.operate(e) })
		s.repeatedly(s.plan.mean/4, func() bool { return f.people }, func() { s.give(e) })
		s.repeatedly(5*s.plan.lease, func() bool { return !s.closed }, func() { s.observe(e, true) })
		s.repeatedly(5*s.plan.lease, func() bool { return !s.closed }, func() { s.observe(e, false) })
	}
}

// repeatedly runs do at random times while may allows it.
func (s *simulation) repeatedly(mean time.Duration, may func() bool, do func()) {
	if !may() {
		return
	}
	s.w.after(s.w.about(mean), func() {
		if may() {
			do()
			s.repeatedly(mean, may, do)
		}
	})
}

// pause stops an agent: for a moment, or for longer than its lease.
func (s *simulation) pause(a *agent) {
	s.figures.Faults++
	d := s.w.about(s.plan.lease)
	s.w.tell("%s: %s is stopped for %v", a.election, a.name, d)
	a.stalled = max(a.stalled, s.w.now+d)
	a.frozen = a.stalled
}

// kill ends an instance and starts it again.
func (s *simulation) kill(i *instance) {
	s.w.tell("instance %d crashes", i.number)
	i.begin()
	i.stalled = s.w.now + s.w.upTo(5*time.Second) // until then the instance does not answer
}

// deafen lets an instance hear nothing for a while.
func (s *simulation) deafen(i *instance) {
	s.figures.Faults++
	alive := i.alive()
	i.setLive(false)
	s.w.after(s.w.about(s.plan.lease), func() {
		if alive() && !i.view.Live() {
			i.setLive(true)
		}
	})
}

// operate does what an operator may do.
func (s *simulation) operate(e leadership.Election) {
	switch {
	case s.w.chance(0.5):
		s.configure(e, s.w.upTo(2*s.plan.lease).Truncate(time.Millisecond))
	case s.w.chance(0.6):
		s.unlock(e, "")
	default:
		s.w.tell("%s: an operator deletes it", e)
		s.operator(e, checker.Call{Verb: checker.Delete, Force: true}, leadership.Delete{Election: e, Force: true}, func(err error) {
			if err == nil {
				s.w.after(s.w.about(s.plan.lease), func() { s.configure(e, s.plan.lockDelay) })
			}
		})
	}
}

// unlock ends a wait, as an operator does that reads the refusal and acknowledges it a while later.
// By then the sentence may be another: the operator gives up.
func (s *simulation) unlock(e leadership.Election, acknowledge string) {
	s.w.tell("%s: an operator unlocks it, and acknowledges %q", e, acknowledge)
	s.truth.acknowledged[acknowledge] = true
	command := leadership.Unlock{Election: e, Reason: "it hangs", Actor: "olga", Acknowledge: acknowledge}
	s.operator(e, checker.Call{Verb: checker.Unlock, Acknowledge: acknowledge}, command, func(err error) {
		if err == nil && acknowledge != "" {
			s.figures.Unlocked++
		}
		if refusal, ok := errors.AsType[*leadership.Error](err); ok && acknowledge == "" && refusal.Code == leadership.LeaseHeld {
			_, sentence, _ := strings.Cut(refusal.Detail, "with exactly this acknowledge: ")
			s.w.after(s.w.upTo(s.plan.lease/6), func() { s.unlock(e, sentence) })
		}
	})
}

// configure repeats the call until it is done, with the limits of a term as they are by then.
func (s *simulation) configure(e leadership.Election, lockDelay time.Duration) {
	c := leadership.Config{LeaseDuration: s.plan.lease, LockDelay: lockDelay, Term: s.plan.policy, Ballot: s.plan.ballot}
	s.under(e, &c)
	s.configures(e, c, func() { s.configure(e, lockDelay) })
}

// configures makes the call, and a second later once more if it was not done.
func (s *simulation) configures(e leadership.Election, c leadership.Config, again func()) {
	s.w.tell("%s: an operator configures a lock delay of %v and %d seats", e, c.LockDelay, c.Seats)
	s.operator(e, checker.Call{Verb: checker.Configure, Config: c}, leadership.Configure{Election: e, Config: c}, func(err error) {
		if err != nil {
			s.w.after(time.Second, again)
		}
	})
}

// reigns lets a new leader work, and resign when its term is over.
func (s *simulation) reigns(a *agent) {
	token, life := a.token, a.life
	still := func() bool { return a.life == life && a.leading && a.token == token }
	s.w.after(s.w.upTo(s.plan.lease), func() { a.does(func() { s.works(a, still) }) })
	if s.plan.handing.promotion && !a.seated {
		s.w.after(s.w.upTo(s.plan.lease), func() {
			a.does(func() {
				if still() {
					a.serves()
				}
			})
		})
	}
	if s.plan.term > 0 {
		s.w.after(s.w.about(s.plan.term), func() {
			a.does(func() {
				switch {
				case !still():
				case !a.seated && s.w.chance(s.plan.handing.share):
					a.handsOver()
				default:
					a.resign()
				}
			})
		})
	}
}

func (s *simulation) works(a *agent, still func() bool) {
	if !still() {
		return
	}
	a.write()
	s.w.after(s.w.about(10*s.plan.lease), func() { a.does(func() { s.works(a, still) }) })
}

// heal ends all faults.
func (s *simulation) heal() {
	s.w.tell("from now on nothing goes wrong")
	s.plan.faults, s.plan.policy = faults{}, leadership.TermPolicy{}
	for _, a := range s.agents {
		a.stalled = min(a.stalled, s.w.now)
	}
	for _, i := range s.instances {
		i.stalled = min(i.stalled, s.w.now)
		if !i.view.Live() {
			i.setLive(true)
		}
	}
	for _, e := range s.names {
		s.configure(e, s.plan.lockDelay)
	}
}
