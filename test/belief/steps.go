package belief

// step is one step of a search: an act, of a candidate or of none.
type step struct {
	act act
	who int8
}

// act is the kind of a step.
type act uint8

const (
	tick      act = iota // a second passes
	expire               // the store finds the lease over
	begin                // the candidate begins a campaign, with a new key
	ask                  // it sends an acquire
	abandon              // it gives up its campaign, and learns that it leads
	keep                 // it sends a renew
	stop                 // it stops its work
	giveBack             // it sends a release
	leave                // it is killed, or forgets everything
	giveUp               // it no longer waits for an answer
	hear                 // it receives the answer
	arrive               // its call reaches the server
	try                  // it is tried again from the queue
	commit               // its transaction, which has read, commits
	abort                // it is aborted, and will read again
	againNew             // an acquire that was sent arrives once more
	againOld             // one with an earlier key does
	againKeep            // a renew does
	againBack            // a release does
	readBack             // a release does, and its transaction reads
	// a release whose transaction has read is committed, with or without a caller
	commitBack
	undo          // the service takes a late heartbeat back
	deleteByForce // an operator deletes the election by force
	deleteIdle    // an operator deletes it unless it is held
	recreate      // an operator recreates it
	unlock        // an operator unlocks it, and acknowledges what that risks
	unlockBlind   // an operator unlocks it without an acknowledgement
	retireIdle    // a tick retires it
	evictLeader   // an operator evicts its leader
	drainIt       // an operator pauses it, and drains it
	resumeIt      // an operator ends the pause
	beginEpoch    // an operator begins a new epoch
	judgeBad      // a verdict ends the leader's term
)

// next calls visit with every possible step, and the state after it.
func (x *search) next(s state, visit func(step, state)) {
	visit(step{act: tick}, x.tick(s))
	x.atAnyTime(s, visit)
	for i := range x.model.Clocks {
		who := int8(i)
		x.onTheWay(s, who, visit)
		x.byItself(s, who, visit)
	}
}

// tick lets a second pass.
func (x *search) tick(s state) state {
	s.lease.tick(x.model)
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

// atAnyTime visits the steps that are possible whatever the candidates do: the store checks the
// lease, operators act, and earlier calls arrive again. Their answers are lost.
func (x *search) atAnyTime(s state, visit func(step, state)) {
	holder := s.recorded() - 1
	send := func(a act, r request) {
		after := s
		x.apply(&after, r)
		visit(step{a, r.who}, after)
	}
	if holder >= 0 {
		send(expire, request{who: holder})
	}
	if s.late {
		send(undo, request{verb: takeBack, who: holder})
	}
	if x.model.Operator {
		send(deleteByForce, request{verb: cut})
		send(deleteIdle, request{verb: drop})
		send(recreate, request{verb: bringBack})
		send(retireIdle, request{verb: retire})
	}
	if x.model.Orders {
		send(evictLeader, request{verb: evict})
		send(drainIt, request{verb: drain})
		send(resumeIt, request{verb: resume})
	}
	if x.model.Epochs {
		send(beginEpoch, request{verb: epoch})
	}
	if x.model.Trips {
		send(judgeBad, request{verb: depose})
	}
	if x.model.Unlock {
		send(unlock, request{verb: free})
		send(unlockBlind, request{verb: freeBlind})
	}
	if s.renewed {
		send(againKeep, request{verb: renew, who: holder, former: s.former})
	}
	if s.released {
		send(againBack, request{verb: release, who: holder, former: s.former})
		if x.model.Commits && int(s.age) < x.model.Lease {
			after := s
			after.releasing = true
			visit(step{readBack, holder}, after)
		}
	}
	if s.releasing {
		send(commitBack, request{verb: release, who: holder, former: s.former, read: readLive})
	}
	for i := range s.candidates {
		if s.candidates[i].asked {
			send(againNew, request{verb: acquire, who: int8(i)})
		}
		if s.candidates[i].askedFormerly {
			send(againOld, request{verb: acquire, who: int8(i), former: true})
		}
	}
}

// onTheWay visits the steps of the candidate's call.
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
	case readLive, readFree:
		x.commit(&after, who, c.place)
		visit(step{commit, who}, after)
		after = s
		after.candidates[who].place = onItsWay
		visit(step{abort, who}, after)
	case answered:
		x.hear(&after.candidates[who], int(who))
		visit(step{hear, who}, after)
	}
	after := s
	after.candidates[who].giveUp()
	visit(step{giveUp, who}, after)
}

// serve lets the candidate's call reach the server.
func (x *search) serve(s *state, who int8) {
	c := s.candidates[who]
	r := request{verb: c.call, who: who, behind: c.outdated() && c.call != acquire}
	if !x.model.Commits || !x.decide(s.lease, r).changed {
		x.commit(s, who, onItsWay)
		return
	}
	at := &s.candidates[who].place
	if *at = readFree; s.recorded() != 0 && int(s.age) < x.model.Lease {
		*at = readLive
		s.releasing = s.releasing || c.call == release
	}
}

// commit decides the candidate's call by its transaction's read, and answers it.
func (x *search) commit(s *state, who int8, read place) {
	c := &s.candidates[who]
	d := x.apply(s, request{verb: c.call, who: who, behind: c.outdated() && c.call != acquire, read: read})
	if c.call == acquire {
		c.behind, c.stale = false, false
		c.excused = c.excused && !d.granted
	}
	if c.call == acquire && !d.done && x.model.Wait > 0 {
		c.place = inLine
		return
	}
	c.answer(d.left)
}

// answer sends an answer to the candidate, with the time left; 0 is a refusal.
func (c *candidate) answer(left uint8) {
	c.place, c.left = answered, left
	if left == 0 {
		c.age, c.waited = 0, 0
	}
}

// apply lets the store decide.
func (x *search) apply(s *state, r request) decision {
	d := x.decide(s.lease, r)
	if r.verb == free && d.changed && s.leader != 0 && !s.former {
		s.candidates[s.leader-1].excused = true
	}
	s.lease = d.lease
	if d.granted && r.verb == epoch {
		x.granted = true
		if c := &s.candidates[s.leader-1]; !s.former && (c.phase >= leads || c.left > 0) {
			c.stale = true
		}
	} else if d.granted {
		x.granted = true
		for i := range s.candidates {
			c := &s.candidates[i]
			c.behind = c.behind || c.phase >= leads || c.left > 0
		}
	}
	if d.granted || d.lease.recorded() == 0 {
		// the rules refuse a call with an older token: see behind
		s.renewed, s.released = false, false
	}
	if d.changed {
		x.overtake(s)
	}
	return d
}

// overtake aborts the transactions that read the record before it changed, because their commits
// are guarded by their reads.
func (x *search) overtake(s *state) {
	s.releasing = false
	for i := range s.candidates {
		if c := &s.candidates[i]; c.place == readLive || c.place == readFree {
			c.place = onItsWay
		}
	}
}

// hear gives the candidate its answer.
func (x *search) hear(c *candidate, who int) {
	heard := *c
	c.silent()
	switch {
	case heard.call == renew && heard.left == 0 && heard.stale && !heard.behind:
		c.phase, c.until, c.stale = campaigns, 0, false // it acquires again with its key
	case heard.call == release || heard.call == renew && heard.left == 0:
		c.forget()
	case heard.left == 0:
	case heard.call == acquire:
		c.until = x.model.belief(who, heard)
		if c.phase = leads; c.until == 0 {
			c.phase, c.behind = campaigns, false // it was over when the answer came
		}
	case heard.until > 0:
		c.until = max(heard.until, x.model.belief(who, heard))
	}
}

// giveUp lets the candidate stop waiting.
func (c *candidate) giveUp() {
	c.silent()
	if c.phase == campaigns {
		c.behind, c.stale = false, false
	}
}

// silent makes the candidate wait for no answer.
func (c *candidate) silent() { c.call, c.place, c.age, c.waited, c.left = silence, onItsWay, 0, 0, 0 }

// forget makes it want nothing.
func (c *candidate) forget() { *c = candidate{asked: c.asked, askedFormerly: c.askedFormerly} }

// byItself visits the steps that the candidate can take by itself.
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
	if c.phase == resigns && c.call == silence {
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

// newestOf reports whether the candidate's lease is the newest, and not known to have ended.
func (s *state) newestOf(who int8) bool {
	return s.recorded() == who+1 && !s.candidates[who].outdated()
}

// outdated reports whether its token is not the newest.
func (c *candidate) outdated() bool { return c.behind || c.stale }
