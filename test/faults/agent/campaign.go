package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/test/checker"
	"regent/test/faults/record"
)

// campaign leads over and over: half of the times by Run, half by Campaign and Resign. Where
// leaders hand over it does so every other time.
func (p *agent) campaign(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	server := p.server()
	if p.Election != record.Pool { // whose leaders are asked by seat
		asking.Go(func() { p.propose(ctx, server) })
	}
	for ctx.Err() == nil {
		if p.rand.IntN(2) == 0 {
			_ = p.server().Run(ctx, p.Election, func(_ context.Context, l *client.Lease) error {
				p.term(ctx, l)
				return nil
			})
		} else if l, err := p.server().Campaign(ctx, p.Election); err == nil {
			p.term(ctx, l)
			p.resign(ctx, l)
		}
		p.rest(ctx, p.Pace)
	}
}

// term leads for a while, or until the lease is over.
func (p *agent) term(ctx context.Context, l *client.Lease) {
	ctx, enough := context.WithCancel(ctx)
	var leaving sync.WaitGroup
	defer leaving.Wait()
	defer enough()
	to, patience := p.successor(), p.patienceInOffice()
	leaving.Go(func() {
		sleep(ctx, patience)
		if to != "" && p.Role != record.Steady {
			_ = l.HandOver(ctx, to) // the term ends, whether the successor is ready or not
		}
		enough()
	})
	leaving.Go(func() { p.cause(ctx, l) })
	server := p.server()
	leaving.Go(func() { p.decide(ctx, l, server) })
	p.lead(l.Election(), l.Token(), func() bool { return ctx.Err() == nil && l.Valid() })
}

// successor draws the candidate to hand over to, which may be one that does not come; "" for none.
func (p *agent) successor() leadership.CandidateID {
	all := p.Successors[p.Election]
	if len(all) == 0 || p.rand.IntN(2) == 0 {
		return ""
	}
	if to := all[p.rand.IntN(len(all))]; to != candidate(p.Name) {
		return to
	}
	return ""
}

// patienceInOffice is how long a leader leads if nothing happens.
func (p *agent) patienceInOffice() time.Duration {
	if p.Role == record.Steady {
		return time.Hour
	}
	return p.Lease/4 + time.Duration(p.rand.Int64N(int64(p.Lease)*3/2))
}

func (p *agent) resign(ctx context.Context, l *client.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*p.Lease)
	defer cancel()
	_ = l.Resign(ctx) // a lease that is not released runs out
}

// cause has one effect a second in an election, as a job that is due each second: all its leaders
// begin the same ones. A kill between a begin and its finish leaves it in doubt.
func (p *agent) cause(ctx context.Context, l *client.Lease) {
	for ctx.Err() == nil && l.Valid() {
		c := checker.EffectCall{
			Who: fmt.Sprintf("%s#%d", p.name, l.Token()), Election: l.Election(), Token: l.Token(),
			ID: leadership.EffectID(fmt.Sprint("second-", int(p.recorder.Now().Seconds()))),
		}
		begun := p.effect(c, func(c *checker.EffectCall) error {
			e, err := l.BeginEffect(ctx, c.ID)
			c.State, c.By, c.Result = e.State, e.Token, e.Result
			return err
		})
		if begun == "" || begun == leadership.EffectDone {
			sleep(ctx, p.Pace)
			continue
		}
		sleep(ctx, p.Pace/2)
		c.Finish, c.Result = true, json.RawMessage(fmt.Sprintf("%q", c.Who))
		p.effect(c, func(c *checker.EffectCall) error {
			c.State, c.By = leadership.EffectDone, c.Token
			return l.FinishEffect(ctx, c.ID, c.Result)
		})
	}
}

// effect makes a call, writes it down, and returns what it was answered; "" for nothing.
func (p *agent) effect(c checker.EffectCall, do func(*checker.EffectCall) error) leadership.EffectState {
	c.Asked = p.recorder.Now()
	err := do(&c)
	c.Answered = p.recorder.Now()
	if err != nil {
		c.State, c.Answered = "", checker.Forever
	}
	if errors.Is(err, leadership.InvalidArgument) || errors.Is(err, leadership.NotFound) {
		p.recorder.Fail("%v: %v", c, err)
	}
	p.recorder.Effect(c)
	return c.State
}

// propose asks the leader of the election one question after the other, each until it is decided,
// or three times.
func (p *agent) propose(ctx context.Context, server *client.Client) {
	for n := 0; ctx.Err() == nil; n++ {
		r := leadership.ProposeRequest{Election: p.Election, CandidateID: candidate(p.Name), ID: leadership.ProposalID(fmt.Sprintf("%s:%d", p.name, n)), Kind: "ask", Wait: p.Pace}
		for range 3 {
			c := checker.ProposalCall{Who: p.name, Election: p.Election, ID: r.ID, Asked: p.recorder.Now()}
			answer, err := server.Propose(ctx, r)
			if p.recordProposal(c, answer, err); answer.Decision != nil {
				break
			}
			sleep(ctx, p.Pace/2)
		}
	}
}

// decide decides what is open, each leader in its own way.
func (p *agent) decide(ctx context.Context, l *client.Lease, server *client.Client) {
	who := fmt.Sprintf("%s#%d", p.name, l.Token())
	for ctx.Err() == nil && l.Valid() {
		all, _ := server.Proposals(ctx, l.Election()) // none if it cannot be read
		for _, open := range all.Open {
			verdict := leadership.ProposalAccepted
			if l.Token()%2 == 0 {
				verdict = leadership.ProposalRejected
			}
			c := checker.ProposalCall{Who: who, Election: l.Election(), ID: open.ID, Asked: p.recorder.Now()}
			answer, err := l.Decide(ctx, open.ID, verdict, "")
			c.Token = l.Token() // a new epoch may have come meanwhile
			p.recordProposal(c, answer, err)
		}
		sleep(ctx, p.Pace)
	}
}

// recordProposal writes down a call with its outcome.
func (p *agent) recordProposal(c checker.ProposalCall, answer leadership.Proposal, err error) {
	c.Answered = checker.Forever
	if err == nil {
		c.Answered = p.recorder.Now()
		if d := answer.Decision; d != nil {
			c.Verdict, c.By = d.Verdict, d.Token
		}
	}
	p.recorder.Propose(c)
}
