package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
)

// long is a lease that outlasts every case.
const long = time.Hour

// protocolCases test faults that a store can have although it passes the contract's cases: with
// many concurrent calls, with batches, and in real time. The decisions of rules are tested in
// package rule, and on a store by its walks.
var protocolCases = []protocolCase{
	{"of many copies of an acquire at once, each answer has a heartbeat of its own", func(p *pair) {
		const copies = 8
		var wg sync.WaitGroup
		var grants [copies]leadership.Grant
		var errs [copies]error
		ask := p.ask("ann")
		for i := range copies {
			wg.Go(func() {
				errs[i] = eventually(func() (err error) { grants[i], err = p.a.Acquire(p.Context(), ask); return err })
			})
		}
		wg.Wait()
		seen := map[time.Time]bool{}
		for i, g := range grants {
			if errs[i] == nil && seen[g.LastHeartbeat] {
				p.Errorf("two answers have the heartbeat of %v: which of them was the grant?", g.LastHeartbeat)
			}
			seen[g.LastHeartbeat] = true
		}
	}},
	{"of many candidates at once, one leads, and the others hear that it does", func(p *pair) {
		const candidates = 12
		var wg sync.WaitGroup
		errs := make([]error, candidates)
		grants := make([]leadership.Grant, candidates)
		asks := make([]leadership.AcquireRequest, candidates)
		for i := range candidates {
			asks[i] = p.ask("c" + string(rune('a'+i)))
		}
		for i := range candidates {
			wg.Go(func() {
				subject := []Subject{p.a, p.b}[i%2]
				errs[i] = eventually(func() (err error) { grants[i], err = subject.Acquire(p.Context(), asks[i]); return err })
			})
		}
		wg.Wait()
		winners := 0
		for i, err := range errs {
			if err == nil {
				winners++
				p.leads(grants[i].Lease, string(asks[i].CandidateID), 1)
			} else {
				p.refused(err, leadership.LeaseHeld)
			}
		}
		if winners != 1 {
			p.Errorf("%d candidates were told that they lead", winners)
		}
	}},
	{"a batch renews held leases, reports lost ones, and answers in order", func(p *pair) {
		const n = 60
		batch := make([]leadership.LeaseRequest, n)
		for i := range n {
			ask := p.ask("ann")
			ask.Election = leadership.Election(fmt.Sprintf("shard-%03d", i))
			ask.LeaseDuration = long
			g, err := p.a.Acquire(p.Context(), ask)
			require.NoError(p, err)
			batch[i] = leadership.LeaseRequest{Election: ask.Election, CandidateID: "ann", Key: *ask.Key, Token: g.Token}
		}
		batch[7].Token = 99
		batch[8].Key = leadership.NewKey()
		batch[9].Election = "never-seen"
		p.backing.Advance(p, long/2)
		for _, handle := range []Subject{p.a, p.b, p.a} {
			results, err := handle.BatchRenew(p.Context(), batch)
			if err != nil || len(results) != n {
				p.Fatalf("got %d results, %v; want %d", len(results), err, n)
			}
			for i, r := range results {
				if 7 <= i && i <= 9 {
					p.refused(r.Err, leadership.LeaseLost)
					continue
				}
				if l := r.Lease; r.Err != nil || l.Election != batch[i].Election || l.Token != batch[i].Token || l.ExpiresIn > long || l.ExpiresIn < long-slack {
					p.Errorf("result %d: got %v left of %s with token %d, %v; want about %v of %s with token %d",
						i, l.ExpiresIn, l.Election, l.Token, r.Err, long, batch[i].Election, batch[i].Token)
				}
			}
		}
	}},
	{"a lease ends by itself, in real time, and not before", func(p *pair) {
		start := time.Now()
		ask := p.ask("ann")
		ask.LeaseDuration = leadership.MinLeaseDuration
		if _, err := p.a.Acquire(p.Context(), ask); err != nil {
			p.Fatal(err)
		}
		p.waits("bob")
		if took := time.Since(start); took < leadership.MinLeaseDuration {
			p.Errorf("bob leads %v after ann was granted %v", took, leadership.MinLeaseDuration)
		}
		l, err := p.b.Get(p.Context(), jobs)
		require.NoError(p, err)
		p.leads(l, "bob", 2)
	}},
}

// again reports whether the error says that the call may be repeated.
func again(err error) bool { return isAny(err, leadership.StoreUnavailable, leadership.OutcomeUnknown) }

// waits makes the candidate ask, whenever its refusals say so, until it leads.
func (p *pair) waits(candidate string) {
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
