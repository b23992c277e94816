package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/instance/instancetest"
	"regent/test/checker"
)

// agent is a candidate that behaves as package client does. The real leadership.Belief decides what
// it believes.
type agent struct {
	s        *simulation
	name     leadership.CandidateID
	election leadership.Election
	seated   bool // it wants a seat of the whole: election is that, or the seat that it was granted last
	clock    clock

	life    int           // the number of the present incarnation
	stalled time.Duration // until when it does nothing
	frozen  time.Duration // until when what has reached it is held up, though it may be let go on before
	call    int           // the number of the call that it waits for
	key     leadership.Key
	failed  int // calls in a row that came to nothing
	willing bool
	late    bool // the last grant was heard of when it was over

	candidacy leadership.Candidacy

	keyless bool          // the service chooses its keys
	margin  time.Duration // the time that it needs to stop
	owed    checker.Verb  // what it asks for and was not answered yet; "" if nothing
	asked   time.Duration // when it asked for that first
	hung    time.Duration // when it had waited for long enough, and closed its connections

	stuck    bool // it makes no progress
	work     leadership.Counters
	renewals int

	leading bool
	token   leadership.Token
	belief  leadership.Belief
	since   time.Duration // when it began to believe
}

// who names its present incarnation.
func (a *agent) who() string { return fmt.Sprintf("%s of %s, life %d", a.name, a.election, a.life) }

// hasty reports whether its clock is faster than allowed. That harms only the agent itself.
func (a *agent) hasty() bool { return a.clock.rate > exact+exact/leadership.Drift }

func (a *agent) now() time.Duration { return a.clock.at(a.s.w.now) }

// left is how long it still believes that it leads, on its own clock.
func (a *agent) left() time.Duration {
	if !a.leading {
		return 0
	}
	return a.belief.Left(a.now())
}

// does lets it do something: now, or when it resumes; not if it crashes before.
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

// after lets it do something later, by its own clock, unless it has begun something else since.
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

// reply is the answer to a call.
type reply struct {
	lease *leadership.Lease
	key   leadership.KeyHash // of the lease that was granted
	err   error
}

// serving is an instance's part of a call; the agent hears its answer.
type serving func(i *instance, id string, answer func(r reply, heard func()))

// serves is the part in which a command is carried out.
func serves(command leadership.Command, heard func(error)) serving {
	return func(i *instance, id string, answer func(reply, func())) {
		i.serve(id, command, func(l leadership.Lease, err error) {
			answer(reply{lease: &l, err: err}, func() { heard(err) })
		})
	}
}

// ask makes a call to a random instance. The first answer within the timeout is heard; without one,
// lost runs.
func (a *agent) ask(c checker.Call, timeout time.Duration, serve serving, lost func()) *instance {
	if a.owed != c.Verb {
		a.owed, a.asked = c.Verb, a.s.w.now
	}
	a.after(timeout, lost)
	i := a.s.any()
	a.sends(i, c, serve)
	return i
}

// sends makes a call; its answer counts unless another one came first.
func (a *agent) sends(i *instance, c checker.Call, serve serving) {
	call := a.call
	a.makes(i, c, serve, func(r reply) bool {
		if a.call != call {
			return false
		}
		a.call++
		if sound(r.err) {
			a.owed = ""
		}
		return true
	})
}

// aside makes a call beside the one that the agent waits for. Without an answer nothing comes of
// it.
func (a *agent) aside(c checker.Call, command leadership.Command, heard func(error)) {
	first := true
	a.makes(a.s.any(), c, serves(command, heard), func(reply) bool {
		defer func() { first = false }()
		return first
	})
}

// makes makes a call whose answer is heard if it counts.
func (a *agent) makes(i *instance, c checker.Call, serve serving, counts func(reply) bool) {
	life, alive := a.life, i.alive()
	recorded := a.s.record.asked(a, c)
	answer := func(r reply, heard func()) {
		if !alive() {
			return // the connection went with the process
		}
		a.s.send(func() {
			if a.life == life {
				a.does(func() {
					if counts(r) {
						a.s.record.answered(recorded, r)
						heard()
					}
				})
			}
		})
	}
	a.s.send(func() {
		if alive() {
			i.does(func() { serve(i, a.s.record.id(recorded), answer) })
		}
	})
}

// sound reports whether err is an answer of the service, and not the lack of one.
func sound(err error) bool {
	return !errors.Is(err, leadership.StoreUnavailable) && !errors.Is(err, leadership.OutcomeUnknown)
}

// begin is a campaign with another key.
func (a *agent) begin() {
	a.leading, a.owed = false, ""
	a.willing = true
	a.key, a.failed, a.late = a.s.key(), 0, false
	if a.s.plan.ballot != (leadership.BallotPolicy{}) && !a.seated && a.s.w.chance(0.3) { // it has other work now
		a.candidacy.Load = a.s.w.random.Int64N(3)
	}
	a.campaign()
}

// stands draws what it says of itself. With a ballot, some have no chance, and the last may be a
// witness.
func (a *agent) stands(n int) {
	w, p := a.s.w, a.s.plan
	if p.ballot == (leadership.BallotPolicy{}) {
		return
	}
	a.candidacy = leadership.Candidacy{Priority: w.random.Int64N(3), Load: w.random.Int64N(3)}
	var capabilities []string
	for _, name := range []string{"far", "fast", "gpu", "near"} {
		if w.chance(0.5) || name == "gpu" && n == 0 {
			capabilities = append(capabilities, name)
		}
	}
	a.candidacy.Capabilities = leadership.NewNames(capabilities...)
	if n > 1 && n == p.agents-1 && w.chance(0.5) {
		a.candidacy.Role = leadership.RoleWitness
	}
}

// eligible reports whether it may lead at all, once the election is configured.
func (a *agent) eligible() bool { return a.eligibleBy(a.s.plan.ballot) }

// eligibleBy reports whether it may lead by that policy.
func (a *agent) eligibleBy(p leadership.BallotPolicy) bool {
	lacks := slices.ContainsFunc(p.Require.List(), func(name string) bool { return !a.candidacy.Capabilities.Has(name) })
	return a.candidacy.Role != leadership.RoleWitness && !lacks
}

// bids reports whether a candidate was refused because a ballot is open.
func bids(r leadership.Reason) bool {
	return slices.Contains([]leadership.Reason{leadership.ReasonBallot, leadership.ReasonOutranked, leadership.ReasonQuorum, leadership.ReasonWitness}, r)
}

// campaign asks to lead.
func (a *agent) campaign() {
	wait := a.s.plan.wait
	if a.seated {
		a.election, wait = whole, 0
	}
	r := leadership.AcquireRequest{
		Election: a.election, CandidateID: a.name, LeaseDuration: a.s.length(), Wait: wait, Candidacy: a.candidacy, Via: a.via(),
	}
	c := checker.Call{Verb: checker.Acquire, Lease: r.LeaseDuration, Candidacy: r.Candidacy, Via: r.Via}
	if !a.keyless {
		r.Key, c.Key = new(a.key), a.key.Hash()
	}
	patience := r.Wait + 10*time.Second
	timeout := a.s.patient(patience)
	i := a.ask(c, timeout, a.acquires(r), func() {
		if timeout == patience {
			a.hung = a.s.w.now
		}
		a.campaignLater()
	})
	if !a.keyless && a.s.w.chance(a.s.plan.faults.twice) {
		a.again(i, c, r)
	}
}

// again repeats the call with the same key, while the first one may still be waiting.
func (a *agent) again(i *instance, c checker.Call, r leadership.AcquireRequest) {
	call, life, w := a.call, a.life, a.s.w
	soon := w.upTo(20 * time.Millisecond)
	if w.chance(0.5) {
		soon = w.upTo(r.Wait)
	}
	w.after(soon, func() {
		if a.life == life && a.call == call && a.stalled <= w.now {
			a.sends(i, c, a.acquires(r))
		}
	})
}

// acquires returns the instance's part of an acquire.
func (a *agent) acquires(r leadership.AcquireRequest) serving {
	sent := a.now()
	return func(i *instance, id string, answer func(reply, func())) {
		i.acquire(r, id, a, func(g leadership.Grant, err error) {
			answer(reply{&g.Lease, g.Key.Hash(), err}, func() { a.answered(sent, g, err) })
		})
	}
}

// answered takes the answer to a campaign.
func (a *agent) answered(sent time.Duration, g leadership.Grant, err error) {
	if err != nil {
		if refusal, ok := errors.AsType[*leadership.Error](err); ok && bids(refusal.Reason) {
			a.failed = 0
			a.after(refusal.RetryAfter, a.campaign) // its turn
			return
		}
		if errors.Is(err, leadership.LeaseHeld) && a.now()-sent >= a.s.plan.wait/2 && a.s.plan.wait > 0 {
			a.failed = 0
			a.campaign()
			return
		}
		a.campaignLater()
		return
	}
	a.election = g.Election
	a.belief = leadership.Believe(sent, a.now(), g, a.margin)
	a.leading, a.token, a.since = true, g.Token, a.s.w.now
	if g.Report == "" { // it is a new term
		a.stuck, a.work, a.renewals = a.s.w.chance(0.2), leadership.Counters{}, 0
	}
	if a.keyless {
		a.key = g.Key
	}
	if a.left() == 0 {
		a.leading = false // it took too long; but it has the lease, and asks how long it still lasts
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

// pace is the pause before the next try; it doubles after each failure.
func (a *agent) pace() time.Duration {
	most := 10 * time.Second
	if a.seated { // it asks for as long as all seats are led
		most = max(most, a.s.plan.lease/4)
	}
	d := min(100*time.Millisecond<<min(a.failed, 10), most)
	a.failed++
	return d/2 + a.s.w.upTo(d/2)
}

// renewAfter schedules a renewal at the time that the server advises, but early enough for another
// try.
func (a *agent) renewAfter(renewIn time.Duration) {
	d := max(min(renewIn, a.left()/2), 50*time.Millisecond)
	a.after(d-a.s.w.upTo(d/10), a.renew)
}

// renew tries to renew once.
func (a *agent) renew() {
	left := a.left()
	if left == 0 {
		a.lose("its deadline has come")
		return
	}
	r := leadership.LeaseRequest{Election: a.election, CandidateID: a.name, Key: a.key, Token: a.token, Report: a.report()}
	sent := a.now()
	if a.s.plan.faults.pauses && a.s.w.chance(0.001) { // at the worst moment: the renewal is on its way, and its answer comes when it is over
		a.s.pause(a)
	}
	c := checker.Call{Verb: checker.Renew, Key: r.Key.Hash(), Token: a.token, Report: leadership.ReportText(r.Report)}
	a.ask(c, min(max(left/3, 250*time.Millisecond), left), func(i *instance, id string, answer func(reply, func())) {
		i.call(id, func(ctx context.Context) {
			asked := i.now()
			l, err := i.service.Renew(ctx, r)
			if err == nil && i.ours(ctx) {
				i.s.truth.answered(l, r.Key.Hash())
				i.learn(l, asked)
			}
			answer(reply{lease: &l, err: err}, func() { a.renewed(sent, l, err) })
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
			if l.Succession.Ready {
				a.yields()
				return
			}
			a.renewAfter(l.RenewIn)
			return
		}
		a.lose("its deadline came before the answer")
	case reasonOf(err) == leadership.ReasonEpoch && !a.keyless:
		a.s.w.tell("%s: %s goes on under the next token", a.election, a.name)
		a.s.figures.Epochs++
		a.ceases()
		a.failed = 0
		a.after(a.s.w.upTo(time.Second), a.campaign) // with its key
	case errors.Is(err, leadership.LeaseLost), errors.Is(err, leadership.ElectionDeleted):
		a.lose("it was told so")
	default:
		a.renewAgain()
	}
}

// report is what a leader says of its work with every third renewal; nil if nothing.
func (a *agent) report() []byte {
	if a.s.plan.policy == (leadership.TermPolicy{}) {
		return nil
	}
	if a.renewals++; a.renewals%3 != 1 {
		return nil
	}
	w := a.s.w
	if !a.stuck {
		a.work.Progress++
	}
	a.work.TokensUsed += w.random.Int64N(3)
	a.work.Calls += w.random.Int64N(4)
	a.work.Errors = min(a.work.Calls, a.work.Errors+w.random.Int64N(3))
	a.s.figures.Reports++
	text, _ := leadership.Report{Counters: a.work}.Text() // counters have a text
	return []byte(text)
}

func reasonOf(err error) leadership.Reason {
	if refusal, ok := errors.AsType[*leadership.Error](err); ok {
		return refusal.Reason
	}
	return ""
}

// renewAgain tries again after a failed renewal.
func (a *agent) renewAgain() { a.after(max(min(a.pace(), a.left()/4), 50*time.Millisecond), a.renew) }

// lose ends the agent's belief; it campaigns again as a new incarnation.
func (a *agent) lose(why string) {
	a.s.w.tell("%s: %s does not lead any more: %s", a.election, a.name, why)
	a.ceases()
	a.willing = false
	a.after(a.s.w.upTo(time.Second), a.begin)
}

// resign stops and gives the lease back, and asks until it is answered.
func (a *agent) resign() { a.stops("resigns", a.release) }

// stops ends a leader's work, and then gives up its lease.
func (a *agent) stops(how string, then func()) {
	if a.left() == 0 {
		return
	}
	a.s.w.tell("%s: %s %s", a.election, a.name, how)
	a.ceases()
	a.willing = false
	a.failed = 0
	then()
}

func (a *agent) release() {
	r := a.named()
	release := leadership.Release{LeaseRequest: r}
	if a.s.plan.policy.Series.Failures > 0 && a.s.w.chance(0.3) {
		release.Outcome = leadership.OutcomeFailed
	}
	c := checker.Call{Verb: checker.Release, Key: r.Key.Hash(), Token: a.token, Outcome: release.Outcome}
	late := a.s.plan.faults.late > 0 && a.s.w.chance(0.1)
	serve := serves(release, func(err error) {
		if err == nil || errors.Is(err, leadership.LeaseLost) {
			a.after(a.s.w.upTo(5*time.Second), a.begin)
			return
		}
		a.releaseLater()
	})
	a.ask(c, 10*time.Second, func(i *instance, id string, answer func(reply, func())) {
		if !late {
			serve(i, id, answer)
			return
		}
		alive := i.alive() // at the worst moment: when the lease has run out, and its end is not recorded yet
		a.s.w.after(a.s.untilEnd(a.election)+a.s.w.upTo(100*time.Millisecond), func() {
			if alive() {
				i.does(func() { serve(i, id, answer) })
			}
		})
	}, a.releaseLater)
}

func (a *agent) releaseLater() { a.after(a.pace(), a.release) }

// write does a leader's work: a write to a place that checks the token.
func (a *agent) write() {
	if a.left() == 0 {
		return
	}
	w := fence.Mark{Election: a.election, Token: a.token}
	a.s.send(func() { a.s.place(a.election).write(w) })
}

// ceases ends its belief.
func (a *agent) ceases() {
	if a.leading {
		a.s.record.believed(a)
		a.belief.End()
	}
	a.leading = false
}

// crash ends it, and starts it again after a while.
func (a *agent) crash() {
	a.s.w.tell("%s: %s crashes", a.election, a.name)
	a.ceases()
	a.willing = false
	a.life++
	a.stalled, a.owed = 0, ""
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
	came   time.Duration
	id     string // of the request
	answer func(leadership.Grant, error)

	keyless bool
	queue   *queue
}

var errGone = unavailable("caller cancelled")

// Gone implements instancetest.Client: a crash closes the connection, and so does a caller whose
// wait is over.
func (c *caller) Gone() error {
	if c.agent.life != c.life || c.agent.hung > c.came {
		return errGone
	}
	return nil
}

// Answered implements instancetest.Client.
func (c *caller) Answered(a instancetest.Answer) {
	c.queue.waiting[c.agent.name]--
	if a.Grant != nil {
		if c.keyless && c.Gone() != nil {
			c.queue.i.giveBack(*a.Grant)
			c.answer(leadership.Grant{}, errGone)
			return
		}
		c.agent.s.truth.answered(a.Grant.Lease, a.Grant.Key.Hash())
		c.answer(*a.Grant, nil)
	} else {
		c.answer(leadership.Grant{}, a.Err)
	}
}

// giveBack releases a lease whose key no caller was told.
func (i *instance) giveBack(g leadership.Grant) {
	r := leadership.LeaseRequest{Election: g.Election, CandidateID: g.LeaderID, Key: g.Key, Token: g.Token}
	i.s.w.after(0, func() { i.serve("", leadership.Release{LeaseRequest: r}, func(leadership.Lease, error) {}) })
}

// acquire serves the call, as package line does.
func (i *instance) acquire(r leadership.AcquireRequest, id string, a *agent, answer func(leadership.Grant, error)) {
	q, ok := i.lines[r.Election]
	if r.Wait == 0 && r.Key == nil {
		r.Key = new(i.s.key())
	}
	if r.Wait == 0 || ok && q.owns(r) {
		i.call(id, func(ctx context.Context) {
			asked, grant := i.now(), i.service.Acquire
			if a.seated {
				grant = i.grantSeat
			}
			g, err := grant(ctx, r)
			if err == nil && i.ours(ctx) {
				i.s.truth.answered(g.Lease, g.Key.Hash())
				i.learn(g.Lease, asked)
			}
			answer(g, err)
		})
		return
	}
	c := &caller{agent: a, life: a.life, came: i.s.w.now, id: id, answer: answer, keyless: r.Key == nil}
	standing, alive := instancetest.NewCaller(c, i.now()), i.alive()
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

// ours reports whether the instance is still in the incarnation in which the call was made.
func (i *instance) ours(ctx context.Context) bool { return processOf(ctx).owner.Alive() }
