package simulation

import (
	"slices"
	"time"

	"regent/leadership"
	"regent/test/checker"
)

// settling is how long after the last fault a message that was sent before may still arrive.
func (s *simulation) settling() time.Duration { return 10*time.Minute + s.patience() }

// patience is the longest time without a leader while candidates are willing: the lease that has to
// run out, its lock delay, and a second; more for candidates that poll instead of waiting in line.
func (s *simulation) patience() time.Duration {
	d := s.plan.lease + s.plan.lockDelay + s.data.guard() + time.Second + s.plan.turns()
	if s.plan.wait == 0 {
		d += 10 * time.Second
	}
	return d
}

// watch checks from now on that each election has a leader, except for short times.
func (s *simulation) watch() {
	s.truth.settled = true
	for _, e := range s.names {
		s.watchOver(e, s.w.now)
	}
}

// watchOver checks one election repeatedly; led is when it last had a leader.
func (s *simulation) watchOver(e leadership.Election, led time.Duration) {
	if s.closed {
		return
	}
	willing := 0
	for _, a := range s.of(e) {
		s.held(a)
		if a.willing && a.frozen < s.w.now && a.eligible() && !s.barred(a) {
			willing++
		}
		if a.left() > 0 {
			led = s.w.now
		}
	}
	if willing < max(1, s.plan.ballot.Quorum.Needed()) || s.stands(e) {
		led = s.w.now
	}
	if alone := s.w.now - led; alone > s.patience() {
		s.truth.accuse(LV, "%s: no leader for %v, though agents are willing", e, alone)
		return
	}
	s.w.after(s.plan.lease/10, func() { s.watchOver(e, led) })
}

// held checks that an agent's call is answered. A candidate in line is answered when its wait is
// over, unless its clock is so fast that it asks again before.
func (s *simulation) held(a *agent) {
	since := max(a.asked, a.frozen)
	bound := 15 * time.Second
	if a.owed == checker.Acquire {
		bound += s.plan.wait
	}
	hasty := a.owed == checker.Acquire && a.hasty()
	if alone := s.w.now - since; a.owed != "" && !hasty && alone > bound {
		s.truth.accuse(LV, "%s: %s has asked for %v to %s, and was not answered", a.election, a.name, alone, a.owed)
	}
}

// relayTime is the longest time until the relay publishes events that were left behind.
const relayTime = 30 * time.Second

// close checks what can only be checked at the end.
func (s *simulation) close() {
	for _, e := range s.stored() {
		for _, event := range s.data.row(e).events {
			if told := s.bus.published[e]; event.Revision > told && event.At.Before(s.data.clock().Add(-relayTime)) {
				s.truth.accuse(EV, "%s: it was announced up to revision %d, and there is %d", e, told, event.Revision)
				break
			}
		}
		for _, i := range s.instances {
			if heard, last := i.newest[e], s.truth.reign(e).revision; i.life == 1 && heard > last {
				s.truth.accuse(EV, "%s: instance %d has heard of revision %d, and there are %d", e, i.number, heard, last)
			}
		}
	}
	for _, v := range checker.OV(checker.Recording{History: s.history()}, s.data.guard()).Violations {
		s.truth.accuse(OV, "%v", v)
	}
	hasty := slices.ContainsFunc(s.agents, (*agent).hasty)
	if s.calm && !hasty && s.truth.involuntary > 0 {
		s.truth.accuse(LV, "nothing went wrong, and %d leases ran out", s.truth.involuntary)
	}
}
