package belief

// step is something that happens.
type step struct {
	act act
	who int8
}

// act is what a step is.
type act uint8

const (
	tick      act = iota // a second goes by
	expire               // the store finds the lease over
	begin                // the candidate begins a campaign, with a new key
	ask                  // it sends an acquire
	abandon              // it gives its campaign up, and reads that it leads
	keep                 // it sends a renew
	stop                 // it stops its work
	giveBack             // it sends a release
	leave                // it is killed, or forgets about it all
	giveUp               // it waits no longer for an answer
	hear                 // it hears it
	arrive               // its call reaches the server
	try                  // it is tried again from the line
	againNew             // an acquire that was sent arrives once more
	againOld             // one with an earlier key does
	againKeep            // a renew does
	againBack            // a release does
)

// next calls visit with all that can happen, and what is then.
func (x *search) next(s state, visit func(step, state)) {
	visit(step{act: tick}, x.tick(s))
	x.again(s, visit)
	for i := range x.model.Clocks {
		who := int8(i)
		x.onTheWay(s, who, visit)
		x.byItself(s, who, visit)
	}
}

// tick lets a second go by.
func (x *search) tick(s state) state {
	if s.leader != 0 {
		s.age = min(s.age+1, uint8(x.model.Lease))
	}
	for i := range s.candidates {
		c := &s.candidates[i]
		c.until -= min(c.until, 1)
		if c.call == silence || c.place == answered && c.left == 0 {
			continue
		}
		c.age = min(c.age+1, x.model.tooOld())
		if c.place == inLine {
			c.waited++
		}
		if int(c.waited) > x.model.Wait {
			c.answer(0)
		}
	}
	return s
}

// again lets arrive what may arrive at any time: what was sent before. Nobody hears the answer.
func (x *search) again(s state, visit func(step, state)) {
	holder := s.leader - 1
	send := func(a act, r request) {
		after := s
		x.apply(&after, r)
		visit(step{a, r.who}, after)
	}
	if s.leader != 0 {
		send(expire, request{who: holder})
	}
	if s.renewed {
		send(againKeep, request{verb: renew, who: holder, former: s.former})
	}
	if s.released {
		send(againBack, request{verb: release, who: holder, former: s.former})
	}
	for i, c := range s.candidates {
		if c.asked {
			send(againNew, request{verb: acquire, who: int8(i)})
		}
		if c.askedFormerly {
			send(againOld, request{verb: acquire, who: int8(i), former: true})
		}
	}
}

// onTheWay is what becomes of the candidate's call.
func (x *search) onTheWay(s state, who int8, visit func(step, state)) {
	c := s.candidates[who]
	if c.call == silence {
		return
	}
	switch after := s; c.place {
	case onItsWay:
		x.serve(&after, who)
		visit(step{arrive, who}, after)
	case inLine:
		x.serve(&after, who)
		visit(step{try, who}, after)
	case answered:
		x.hear(&after.candidates[who], int(who))
		visit(step{hear, who}, after)
	}
	after := s
	x.giveUp(&after.candidates[who], int(who))
	visit(step{giveUp, who}, after)
}

// serve lets the server see the candidate's call.
func (x *search) serve(s *state, who int8) {
	c := &s.candidates[who]
	d := x.apply(s, request{verb: c.call, who: who, behind: c.behind && c.call != acquire})
	if c.call == acquire {
		c.behind = false
	}
	if c.call == acquire && !d.done && x.model.Wait > 0 {
		c.place = inLine
		return
	}
	c.answer(d.left)
}

// answer is on its way to the candidate. Of a refusal nothing else matters.
func (c *candidate) answer(left uint8) {
	c.place, c.left = answered, left
	if left == 0 {
		c.age, c.waited = 0, 0
	}
}

// apply lets the store decide.
func (x *search) apply(s *state, r request) decision {
	d := x.decide(s.lease, r)
	s.lease = d.lease
	if d.granted {
		for i := range s.candidates {
			c := &s.candidates[i]
			c.behind = c.behind || c.phase >= leads || c.left > 0
		}
	}
	if d.granted || d.lease.leader == 0 {
		s.renewed, s.released = false, false // the rules refuse the call with an older token: see behind
	}
	return d
}

// hear lets the candidate have its answer.
func (x *search) hear(c *candidate, who int) {
	heard := *c
	c.silent()
	switch {
	case heard.call == release || heard.call == renew && heard.left == 0:
		c.forget()
	case heard.left == 0:
	case heard.call == acquire:
		c.until = x.model.belief(who, heard)
		if c.phase = leads; c.until == 0 {
			c.phase, c.behind = campaigns, false // it was over when it was heard of
		}
	case heard.until > 0 || x.model.Bug == LateReplyCounts:
		c.until = max(heard.until, x.model.belief(who, heard))
		c.revived = heard.until == 0 && c.until > 0
	}
}

// giveUp lets the candidate hear nothing.
func (x *search) giveUp(c *candidate, who int) {
	lost := *c
	c.silent()
	if c.phase == campaigns {
		c.behind = false
	}
	if lost.call == renew && lost.until > 0 && x.model.Bug == UnknownExtends {
		lost.left = uint8(x.model.Lease)
		c.until = max(lost.until, x.model.belief(who, lost))
	}
}

// silent makes the candidate one that waits for no answer.
func (c *candidate) silent() { c.call, c.place, c.age, c.waited, c.left = silence, onItsWay, 0, 0, 0 }

// forget makes it one that wants nothing.
func (c *candidate) forget() { *c = candidate{asked: c.asked, askedFormerly: c.askedFormerly} }

// byItself is what the candidate does.
func (x *search) byItself(s state, who int8, visit func(step, state)) {
	do := func(a act, change func(*state, *candidate)) {
		after := s
		change(&after, &after.candidates[who])
		visit(step{a, who}, after)
	}
	c := s.candidates[who]
	if c.phase != away {
		do(leave, func(_ *state, c *candidate) { c.forget() })
	}
	if c.phase == campaigns && s.newestOf(who) && !s.former {
		do(abandon, func(_ *state, c *candidate) { c.silent(); c.phase = resigns })
	}
	if c.phase == resigns && c.call == silence && x.model.Bug == KeyAgain {
		do(ask, func(_ *state, c *candidate) { c.phase, c.call, c.behind = campaigns, acquire, false })
	}
	switch {
	case c.phase == away:
		do(begin, func(s *state, c *candidate) { s.newKey(who); c.phase, c.call, c.asked = campaigns, acquire, true })
	case c.phase == campaigns && c.call == silence:
		do(ask, func(_ *state, c *candidate) { c.call = acquire })
	case c.phase == leads:
		do(stop, func(_ *state, c *candidate) { c.silent(); c.phase, c.until = resigns, 0 })
		if c.call == silence && c.until > 0 {
			do(keep, func(s *state, c *candidate) { c.call = renew; s.renewed = s.renewed || s.newestOf(who) })
		}
	}
	if c.phase == resigns && c.call == silence || c.phase == leads && x.model.Bug == ReleaseFirst {
		do(giveBack, func(s *state, c *candidate) {
			c.silent()
			c.phase, c.call = resigns, release
			s.released = s.released || s.newestOf(who)
		})
	}
}

// newKey makes the candidate's present key an earlier one.
func (s *state) newKey(who int8) {
	c := &s.candidates[who]
	c.asked, c.askedFormerly = false, c.askedFormerly || c.asked
	if s.leader == who+1 {
		s.former = true
	}
}

// newestOf says whether the lease in the candidate's hand is the newest, and not known to have ended.
func (s *state) newestOf(who int8) bool { return s.leader == who+1 && !s.candidates[who].behind }
