package storetest

import (
	"fmt"
	"time"

	"regent/leadership"
)

var batchCases = []protocolCase{
	{"a batch renews held leases, reports lost ones, and answers in order", func(p *pair) {
		const n = 60
		batch := make([]leadership.LeaseRequest, n)
		for i := range n {
			ask := p.ask("ann")
			ask.Election = leadership.Election(fmt.Sprintf("shard-%03d", i))
			ask.LeaseDuration = long
			g, err := p.a.Acquire(p.Context(), ask)
			if err != nil {
				p.Fatal(err)
			}
			batch[i] = leadership.LeaseRequest{Election: ask.Election, CandidateID: "ann", Key: *ask.Key, Token: g.Token}
		}
		batch[7].Token = 99
		batch[8].Key = leadership.NewKey()
		batch[9].Election = "never-seen"
		p.advance(long / 2)
		for _, handle := range []Subject{p.a, p.b, p.a} {
			p.renewsAllBut(handle, batch, map[int]bool{7: true, 8: true, 9: true})
		}
	}},
	{"a batch of tokens is checked one by one", func(p *pair) {
		p.acquire("ann")
		results, err := p.b.BatchCheckTokens(p.Context(), []leadership.TokenCheck{{Election: "never-seen", Token: 1}, {Election: jobs, Token: 1}})
		if err != nil || len(results) != 2 {
			p.Fatalf("got %v, %v; want two results", results, err)
		}
		p.refused(results[0].Err, leadership.NotFound)
		if results[1].Err != nil {
			p.Errorf("the leader's token: %v", results[1].Err)
		}
		p.leads(results[1].Lease, "ann", 1)
	}},
}

func (p *pair) renewsAllBut(handle Subject, batch []leadership.LeaseRequest, lost map[int]bool) {
	p.Helper()
	results, err := handle.BatchRenew(p.Context(), batch)
	if err != nil || len(results) != len(batch) {
		p.Fatalf("got %d results, %v; want %d", len(results), err, len(batch))
	}
	for i, r := range results {
		switch {
		case lost[i]:
			p.refused(r.Err, leadership.LeaseLost)
		case r.Err != nil:
			p.Errorf("%s: %v", batch[i].Election, r.Err)
		default:
			p.about(string(batch[i].Election)+" expiresIn", r.Lease.ExpiresIn, long)
			if r.Lease.Election != batch[i].Election || r.Lease.Token != batch[i].Token {
				p.Errorf("result %d is of %s with token %d, want %s with %d", i, r.Lease.Election, r.Lease.Token, batch[i].Election, batch[i].Token)
			}
		}
	}
}

// again says that a call may simply be repeated.
func again(err error) bool { return isAny(err, leadership.StoreUnavailable, leadership.OutcomeUnknown) }

var timeCases = []protocolCase{
	{"a lease ends by itself, in real time, and not before", func(p *pair) {
		start := time.Now()
		ask := p.ask("ann")
		ask.LeaseDuration = leadership.MinLeaseDuration
		if _, err := p.a.Acquire(p.Context(), ask); err != nil {
			p.Fatal(err)
		}
		p.eventually("bob")
		if took := time.Since(start); took < leadership.MinLeaseDuration {
			p.Errorf("bob leads %v after ann was granted %v", took, leadership.MinLeaseDuration)
		}
		p.leads(p.get(), "bob", 2)
	}},
}

// eventually lets the candidate ask, as often as it is told to, until it leads.
func (p *pair) eventually(candidate string) {
	p.Helper()
	for range 50 {
		_, err := p.b.Acquire(p.Context(), p.ask(candidate))
		if err == nil {
			return
		}
		e := p.refused(err, leadership.LeaseHeld)
		select {
		case <-time.After(max(e.RetryAfter, time.Millisecond)): // as a client would
		case <-p.Context().Done():
		}
	}
	p.Fatalf("%s does not get to lead", candidate)
}
