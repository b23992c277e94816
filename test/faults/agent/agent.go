package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/test/checker"
	"regent/test/faults/record"
)

// agent is a member at work. It belongs to one goroutine.
type agent struct {
	*group
	record.Member
	name    string // with the life of its process
	clients []*client.Client
	rand    *rand.Rand
	calls   int
	terms   int
}

func newRand(seed, life, member uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, life<<32|member))
}

func candidate(name string) leadership.CandidateID { return leadership.CandidateID(name) }

func (p *agent) act(ctx context.Context) {
	switch p.Role {
	case record.Campaigner, record.Steady:
		p.campaign(ctx)
	case record.Caller:
		newCaller(p).work(ctx)
	case record.Watcher:
		p.watch(ctx)
	case record.Reader:
		p.read(ctx)
	case record.Operator:
		p.operate(ctx)
	case record.Usher:
		p.usher(ctx)
	}
}

// server is the next to call.
func (p *agent) server() *client.Client {
	if p.Server != record.Any {
		return p.clients[p.Server]
	}
	return p.clients[p.rand.IntN(len(p.clients))]
}

// within is a context for one call, whose changes can be told by their request id.
func (p *agent) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	p.calls++
	ctx = leadership.WithRequestID(ctx, fmt.Sprintf("%s:%d", p.name, p.calls))
	return context.WithTimeout(ctx, d)
}

// rest waits between two calls.
func (p *agent) rest(ctx context.Context, pace time.Duration) {
	sleep(ctx, pace/2+time.Duration(p.rand.Int64N(int64(pace))))
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

const (
	asks   = 4 * time.Millisecond  // between two questions to a lease
	writes = 40 * time.Millisecond // between two writes of a leader
)

// lead believes for as long as valid says so, and writes to the ledger meanwhile: each write begins
// while it believes, and may arrive later. It returns once it believes no more.
func (p *agent) lead(e leadership.Election, token leadership.Token, valid func() bool) {
	p.terms++
	who := fmt.Sprintf("%s#%d", p.name, p.terms)
	over := make(chan struct{})
	go func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			if valid() {
				p.write(record.Ledger{Who: who, Election: e, Token: token})
			}
			time.Sleep(writes)
		}
	}()
	defer close(over)
	b := checker.Belief{Who: who, Election: e, Token: token}
	p.recorder.Believe(b, asks, valid)
	if p.Lie > 0 {
		until := p.recorder.Now() + p.Lie
		go p.recorder.Believe(b, asks, func() bool { return p.recorder.Now() < until })
	}
}

var ledger = &http.Client{Timeout: 10 * time.Second}

// write writes to the ledger, which itself records the writes that it admits.
func (p *agent) write(entry record.Ledger) {
	body, err := json.Marshal(entry)
	if err != nil {
		panic(err)
	}
	response, err := ledger.Post("http://"+p.Ledger, "application/json", bytes.NewReader(body))
	if err == nil {
		response.Body.Close()
	}
}
