package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/queue/line"
	"regent/test/checker"
)

// agent wants to lead, as package client does it: what it believes is decided by the real leadership.Belief.
type agent struct {
	s        *simulation
	name     leadership.CandidateID
	election leadership.Election
	clock    clock

	life    int           // the number of the present incarnation
	stalled time.Duration // until when it does nothing
	call    int           // the number of the call that it waits for
	key     leadership.Key
	failed  int // calls in a row that came to nothing
	willing bool
	wanted  time.Duration // since when it is willing
	late    bool          // the last grant was heard of when it was over

	leading bool
	token   leadership.Token
	belief  leadership.Belief
	since   time.Duration // when it began to believe
}

// who is the name of its incarnation.
func (a *agent) who() string { return fmt.Sprintf("%s of %s, life %d", a.name, a.election, a.life) }

func (a *agent) now() time.Duration { return a.clock.at(a.s.w.now) }

// left is for how long it believes that it leads, on its own clock: what it would say if it were asked now.
func (a *agent) left() time.Duration {
	if !a.leading {
		return 0
	}
	return a.belief.Left(a.now())
}

// does lets it do something: now, or when it goes on, and not if it crashes before.
func (a *agent) does(do func()) {
	life, w := a.life, a.s.w
	if a.stalled <= w.now {
		do()
		return
	}
	w.at(a.stalled, func() {
		if a.life == life {
			a.does(do)
		}
	})
}

// after lets it do something later, by its own clock, unless it has been doing something else since.
func (a *agent) after(d time.Duration, do func()) {
	a.call++
	call, life := a.call, a.life
	a.s.w.after(a.clock.until(d), func() {
		if a.life == life {
			a.does(func() {
				if a.call == call {
					do()
				}
			})
		}
	})
}

// ask makes a call of any instance. What answers is heard once, at most so long after; then lost is done.
func (a *agent) ask(c checker.Call, timeout time.Duration, serve func(i *instance, id string, answer func(l *leadership.Lease, err error, heard func())), lost func()) {
	a.after(timeout, lost)
	call, life, i := a.call, a.life, a.s.any()
	recorded := a.s.record.asked(a, c)
	alive := i.alive()
	answer := func(l *leadership.Lease, err error, heard func()) {
		if !alive() {
			return // the connection went with the process
		}
		a.s.send(func() {
			if a.life == life {
				a.does(func() {
					if a.call == call {
						a.call++
						a.s.record.answered(recorded, l, err)
						heard()
					}
				})
			}
		})
	}
	a.s.figures.Calls++
	a.s.send(func() {
		if alive() {
			i.does(func() { serve(i, a.s.record.id(recorded), answer) })
		}
	})
}

// begin is a campaign with another key.
func (a *agent) begin() {
	a.leading = false
	a.wants(true)
	a.key, a.failed, a.late = a.s.key(), 0, false
	a.campaign()
}

// campaign asks to lead.
func (a *agent) campaign() {
	key := a.key
	r := leadership.AcquireRequest{Election: a.election, CandidateID: a.name, Key: &key, Wait: a.s.plan.wait}
	sent := a.now()
	c := checker.Call{Verb: checker.Acquire, Key: key.Hash()}
	a.ask(c, a.s.patient(r.Wait+10*time.Second), func(i *instance, id string, answer func(*leadership.Lease, error, func())) {
		i.acquire(r, id, a, func(g leadership.Grant, err error) {
			answer(&g.Lease, err, func() { a.answered(sent, g, err) })
		})
	}, a.campaignLater)
}

// answered takes the answer to a campaign.
func (a *agent) answered(sent time.Duration, g leadership.Grant, err error) {
	if err != nil {
		if errors.Is(err, leadership.LeaseHeld) && a.now()-sent >= a.s.plan.wait/2 && a.s.plan.wait > 0 {
			a.failed = 0
			a.campaign()
			return
		}
		a.campaignLater()
		return
	}
	a.belief = leadership.Believe(sent, a.now(), g, 0)
	a.leading, a.token, a.since = true, g.Token, a.s.w.now
	if a.left() == 0 {
		a.leading = false // it took too long: but it has the lease, and asks for what is left of it
		if !a.late {
			a.failed = 0
		}
		a.late = true
		a.campaignLater()
		return
	}
	a.s.w.tell("%s: %s leads with token %d, for %v by its clock", a.election, a.name, a.token, a.left())
	a.s.truth.believes(a)
	a.failed, a.late = 0, false
	a.renewAfter(g.RenewIn)
	a.s.reigns(a)
}

func (a *agent) campaignLater() { a.after(a.pace(), a.campaign) }

// pace is twice as long after each failure.
func (a *agent) pace() time.Duration {
	d := min(100*time.Millisecond<<min(a.failed, 10), 10*time.Second)
	a.failed++
	return d/2 + a.s.w.upTo(d/2)
}

// renewAfter renews when the server says, but with time for another try.
func (a *agent) renewAfter(renewIn time.Duration) {
	d := max(min(renewIn, a.left()/2), 50*time.Millisecond)
	a.after(d-a.s.w.upTo(d/10), a.renew)
}

// renew tries once.
func (a *agent) renew() {
	left := a.left()
	if left == 0 {
		a.lose("its deadline has come")
		return
	}
	r := leadership.LeaseRequest{Election: a.election, CandidateID: a.name, Key: a.key, Token: a.token}
	sent := a.now()
	if a.s.plan.faults.pauses && a.s.w.chance(0.001) { // at the worst moment: the renewal is on its way, and its answer comes when it is over
		a.s.pause(a)
	}
	c := checker.Call{Verb: checker.Renew, Key: r.Key.Hash(), Token: a.token}
	a.ask(c, min(max(left/3, 250*time.Millisecond), left), func(i *instance, id string, answer func(*leadership.Lease, error, func())) {
		i.call(id, func(ctx context.Context) {
			l, err := i.service.Renew(ctx, r)
			if err == nil && i.ours(ctx) {
				i.s.truth.answered(l, r.Key.Hash())
				i.learn(l)
			}
			answer(&l, err, func() { a.renewed(sent, l, err) })
		})
	}, a.renewAgain)
}

func (a *agent) renewed(sent time.Duration, l leadership.Lease, err error) {
	switch {
	case err == nil:
		a.failed = 0
		a.s.figures.Renewals++
		over := a.left() == 0
		if a.belief.Renewed(sent, a.now(), l); a.left() > 0 {
			if over {
				a.s.truth.accuse(ME2, "%s: %s believes again in token %d, which it had ceased to believe in", a.election, a.name, a.token)
			}
			a.s.truth.believes(a)
			a.renewAfter(l.RenewIn)
			return
		}
		a.lose("its deadline came before the answer")
	case errors.Is(err, leadership.LeaseLost), errors.Is(err, leadership.ElectionDeleted):
		a.lose("it was told so")
	default:
		a.renewAgain()
	}
}

// renewAgain tries again after one that came to nothing.
func (a *agent) renewAgain() { a.after(max(min(a.pace(), a.left()/4), 50*time.Millisecond), a.renew) }

// lose ends what it believes, and wants to lead again as somebody else.
func (a *agent) lose(why string) {
	a.s.w.tell("%s: %s does not lead any more: %s", a.election, a.name, why)
	a.ceases()
	a.wants(false)
	a.s.figures.LostLeases++
	a.after(a.s.w.upTo(time.Second), a.begin)
}

// resign stops and gives the lease back, and asks until it is answered.
func (a *agent) resign() {
	if a.left() == 0 {
		return
	}
	a.s.w.tell("%s: %s resigns", a.election, a.name)
	a.ceases()
	a.wants(false)
	a.s.figures.Resigned++
	a.failed = 0
	a.release()
}

func (a *agent) release() {
	r := leadership.LeaseRequest{Election: a.election, CandidateID: a.name, Key: a.key, Token: a.token}
	c := checker.Call{Verb: checker.Release, Key: r.Key.Hash(), Token: a.token}
	a.ask(c, 10*time.Second, func(i *instance, id string, answer func(*leadership.Lease, error, func())) {
		i.call(id, func(ctx context.Context) {
			l, err := i.service.Release(ctx, r)
			if err == nil && i.ours(ctx) {
				i.learn(l)
			}
			answer(&l, err, func() {
				if err == nil || errors.Is(err, leadership.LeaseLost) {
					a.after(a.s.w.upTo(5*time.Second), a.begin)
					return
				}
				a.releaseLater()
			})
		})
	}, a.releaseLater)
}

func (a *agent) releaseLater() { a.after(a.pace(), a.release) }

// write does what a leader does, where the token is looked at.
func (a *agent) write() {
	if a.left() == 0 {
		return
	}
	who, w := a.who(), fence.Mark{Election: a.election, Token: a.token}
	a.s.send(func() { a.s.place(a.election).write(who, w) })
}

// ceases ends what it believes.
func (a *agent) ceases() {
	if a.leading {
		a.s.record.believed(a)
		a.belief.End()
	}
	a.leading = false
}

// wants says whether it wants to lead from now on.
func (a *agent) wants(to bool) {
	if a.willing && !to {
		a.s.record.willing(a, a.wanted)
	}
	if to && !a.willing {
		a.wanted = a.s.w.now
	}
	a.willing = to
}

// crash ends it, and begins it anew after a while.
func (a *agent) crash() {
	a.s.w.tell("%s: %s crashes", a.election, a.name)
	a.ceases()
	a.wants(false)
	a.life++
	a.stalled = 0
	life := a.life
	a.s.w.after(a.s.w.about(a.s.plan.lease), func() {
		if a.life == life {
			a.begin()
		}
	})
}

// caller is an agent's call that stands in line.
type caller struct {
	agent  *agent
	life   int
	id     string // of the request
	answer func(leadership.Grant, error)
}

var errGone = unavailable("whoever asked has gone")

// Gone implements line.Client: a crash closes the connection.
func (c *caller) Gone() error {
	if c.agent.life != c.life {
		return errGone
	}
	return nil
}

// Answered implements line.Client.
func (c *caller) Answered(a line.Answer) {
	if a.Grant != nil {
		c.agent.s.truth.answered(a.Grant.Lease, a.Grant.Key.Hash())
		c.answer(*a.Grant, nil)
	} else {
		c.answer(leadership.Grant{}, a.Err)
	}
}

// acquire serves the call, as package queue does.
func (i *instance) acquire(r leadership.AcquireRequest, id string, a *agent, answer func(leadership.Grant, error)) {
	q, ok := i.lines[r.Election]
	if r.Wait == 0 || ok && q.line.Leads(r.CandidateID, i.now()) {
		i.call(id, func(ctx context.Context) {
			g, err := i.service.Acquire(ctx, r)
			if err == nil && i.ours(ctx) {
				i.s.truth.answered(g.Lease, g.Key.Hash())
				i.learn(g.Lease)
			}
			answer(g, err)
		})
		return
	}
	c := &caller{agent: a, life: a.life, id: id, answer: answer}
	standing, alive := line.NewCaller(c, i.now()), i.alive()
	i.join(standing, r)
	i.s.w.after(i.clock.until(r.Wait), func() {
		if alive() {
			i.does(func() {
				if q, ok := i.lines[r.Election]; ok {
					q.line.Leave(standing, c.Gone(), i.now())
				}
			})
		}
	})
}

// ours says whether the process in which a call was made is still the instance.
func (i *instance) ours(ctx context.Context) bool { return processOf(ctx).owner.Alive() }
