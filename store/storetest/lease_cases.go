package storetest

import (
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
)

const defaultLease = leadership.DefaultLeaseDuration

// long is a lease that outlasts every case.
const long = time.Hour

var leaseCases = []protocolCase{
	{"the first acquire creates the election and grants token 1", func(p *pair) {
		l := p.acquire("ann")
		p.leads(l, "ann", 1)
		p.about("expiresIn", l.ExpiresIn, defaultLease)
		p.about("renewIn", l.RenewIn, defaultLease/3)
		if l.LeaseDuration != defaultLease || l.Revision != 1 {
			p.Errorf("got a lease of %v at revision %d, want %v at 1", l.LeaseDuration, l.Revision, defaultLease)
		}
		p.leads(p.get(), "ann", 1)
	}},
	{"a refused candidate is told the leader, the remaining time and the reason", func(p *pair) {
		p.acquire("ann")
		e := p.refusedAcquire("bob", leadership.LeaseHeld)
		if e.Lease == nil || e.Lease.LeaderID != "ann" || e.Lease.Token != 1 || e.Reason != leadership.ReasonHeld {
			p.Errorf("got %+v, want ann's lease and the reason %s", e, leadership.ReasonHeld)
		}
		if e.RetryAfter < time.Second || e.RetryAfter > defaultLease+time.Second {
			p.Errorf("retry after %v, want about the rest of the lease", e.RetryAfter)
		}
	}},
	{"the leader that acquires again with its key renews: same token, no new revision", func(p *pair) {
		first := p.acquire("ann")
		p.advance(defaultLease / 2)
		g, err := p.b.Acquire(p.Context(), p.ask("ann"))
		if err != nil {
			p.Fatal(err)
		}
		p.leads(g.Lease, "ann", first.Token)
		p.about("expiresIn", g.ExpiresIn, defaultLease)
		if g.Revision != first.Revision {
			p.Errorf("revision %d, want %d", g.Revision, first.Revision)
		}
	}},
	{"the same candidate with another key waits like everyone else", func(p *pair) {
		p.acquire("ann")
		other := p.key("ann's second incarnation")
		ask := leadership.AcquireRequest{Election: jobs, CandidateID: "ann", Key: &other}
		_, err := p.a.Acquire(p.Context(), ask)
		if e := p.refused(err, leadership.LeaseHeld); e.Reason != leadership.ReasonIncarnation {
			p.Errorf("reason %s, want %s", e.Reason, leadership.ReasonIncarnation)
		}
		p.advance(defaultLease + time.Second)
		g, err := p.a.Acquire(p.Context(), ask)
		if err != nil {
			p.Fatal(err)
		}
		p.leads(g.Lease, "ann", 2)
		_, err = p.a.Renew(p.Context(), p.of("ann", 1))
		p.refused(err, leadership.LeaseLost)
	}},
	{"a renewal lets the lease start anew, and is no revision", func(p *pair) {
		first := p.acquire("ann")
		for range 3 {
			p.advance(defaultLease * 2 / 3)
			for _, handle := range []Subject{p.a, p.b} {
				l, err := handle.Renew(p.Context(), p.of("ann", 1))
				if err != nil {
					p.Fatal(err)
				}
				p.leads(l, "ann", 1)
				p.about("expiresIn", l.ExpiresIn, defaultLease)
				if l.Revision != first.Revision {
					p.Errorf("revision %d, want %d", l.Revision, first.Revision)
				}
			}
		}
		p.leads(p.get(), "ann", 1)
	}},
	{"only the exact lease is renewed: election, candidate, key and token", func(p *pair) {
		p.acquire("ann")
		p.release("ann", 1)
		p.acquire("bob") // token 2
		before := p.get()
		for name, r := range map[string]leadership.LeaseRequest{
			"an older token":    p.of("bob", 1),
			"a future token":    p.of("bob", 3),
			"another candidate": p.of("ann", 2),
			"another key":       {Election: jobs, CandidateID: "bob", Key: leadership.NewKey(), Token: 2},
			"another election":  {Election: "never-seen", CandidateID: "bob", Key: p.key("bob"), Token: 2},
		} {
			_, err := p.a.Renew(p.Context(), r)
			if e := p.refused(err, leadership.LeaseLost); r.Election == jobs && (e.Lease == nil || e.Lease.LeaderID != "bob") {
				p.Errorf("%s: got %+v, want to hear that bob leads", name, e)
			}
		}
		if after := p.get(); after.LastHeartbeat != before.LastHeartbeat || after.Revision != before.Revision {
			p.Errorf("a refused renewal has changed something: %+v, before %+v", after, before)
		}
	}},
	{"a late renewal does not revive the lease, even when no one took it", func(p *pair) {
		p.acquire("ann")
		p.advance(defaultLease + time.Second)
		_, err := p.a.Renew(p.Context(), p.of("ann", 1))
		p.refused(err, leadership.LeaseLost)
		p.vacant(p.get(), 1)
	}},
	{"after the end another candidate leads, with the next token", func(p *pair) {
		p.acquire("ann")
		p.advance(defaultLease + time.Second)
		p.leads(p.acquire("bob"), "bob", 2)
		_, err := p.b.Renew(p.Context(), p.of("ann", 1))
		if e := p.refused(err, leadership.LeaseLost); e.Lease == nil || e.Lease.LeaderID != "bob" || e.Lease.Token != 2 {
			p.Errorf("got %+v, want to hear that bob leads with token 2", e)
		}
	}},
	{"a release twice is the same as once, and a successor is never touched", func(p *pair) {
		p.acquire("ann")
		p.release("ann", 1)
		p.vacant(p.release("ann", 1), 1)
		p.acquire("bob")
		p.release("ann", 1)
		p.leads(p.get(), "bob", 2)
	}},
	{"a release with another key, candidate or a future token is refused", func(p *pair) {
		p.acquire("ann")
		for name, r := range map[string]leadership.LeaseRequest{
			"another key":       {Election: jobs, CandidateID: "ann", Key: leadership.NewKey(), Token: 1},
			"another candidate": p.of("bob", 1),
			"a future token":    p.of("ann", 2),
		} {
			if _, err := p.b.Do(p.Context(), leadership.Release{LeaseRequest: r}); err == nil {
				p.Errorf("%s: the release was done", name)
			} else {
				p.refused(err, leadership.LeaseLost)
			}
		}
		p.leads(p.get(), "ann", 1)
	}},
	{"a longer lease takes effect when the leader acquires again, a shorter one at the next grant", func(p *pair) {
		p.acquire("ann")
		for _, c := range []struct{ asked, want time.Duration }{
			{2 * defaultLease, 2 * defaultLease},
			{defaultLease / 2, 2 * defaultLease},
		} {
			ask := p.ask("ann")
			ask.LeaseDuration = c.asked
			g, err := p.a.Acquire(p.Context(), ask)
			if err != nil {
				p.Fatal(err)
			}
			if g.LeaseDuration != c.want || g.Token != 1 {
				p.Errorf("asked for %v: got %v with token %d, want %v with token 1", c.asked, g.LeaseDuration, g.Token, c.want)
			}
		}
	}},
	{"metadata are kept in canonical form, changed by the leader, and gone with its lease", func(p *pair) {
		ask := p.ask("ann")
		ask.Metadata = []byte(` { "b": [1.0, 1e2, "<é>"], "a": {"x": null} } `)
		if _, err := p.a.Acquire(p.Context(), ask); err != nil {
			p.Fatal(err)
		}
		if diff := cmp.Diff(leadership.Metadata(`{"a":{"x":null},"b":[1,100,"<é>"]}`), p.get().Metadata); diff != "" {
			p.Errorf("metadata (-want +got):\n%s", diff)
		}
		p.acquire("ann") // without metadata: as before
		ask.Metadata = []byte(`{"a":2}`)
		if _, err := p.b.Acquire(p.Context(), ask); err != nil {
			p.Fatal(err)
		}
		if got := p.get(); got.Metadata != `{"a":2}` || got.Revision != 2 {
			p.Errorf("got %s at revision %d, want the new metadata at revision 2", got.Metadata, got.Revision)
		}
		if got := p.release("ann", 1); got.Metadata != "" {
			p.Errorf("a vacant election has metadata %s", got.Metadata)
		}
	}},
	{"a token is current while its lease lasts, and stale ever after", func(p *pair) {
		check := func(token leadership.Token) error {
			_, err := p.b.CheckToken(p.Context(), leadership.TokenCheck{Election: jobs, Token: token})
			return err
		}
		p.refused(check(1), leadership.NotFound)
		p.acquire("ann")
		if err := check(1); err != nil {
			p.Errorf("the leader's token: %v", err)
		}
		p.refused(check(2), leadership.TokenStale)
		p.advance(defaultLease + time.Second)
		p.refused(check(1), leadership.TokenStale)
		p.acquire("bob")
		if e := p.refused(check(1), leadership.TokenStale); e.Lease == nil || e.Lease.Token != 2 {
			p.Errorf("got %+v, want to hear that token 2 is current", e)
		}
	}},
	{"of many copies of an acquire at once, each answer has a heartbeat of its own", func(p *pair) {
		const copies = 8
		var wg sync.WaitGroup
		var grants [copies]leadership.Grant
		var errs [copies]error
		ask := p.ask("ann")
		for i := range copies {
			wg.Go(func() {
				for range 20 {
					if grants[i], errs[i] = p.a.Acquire(p.Context(), ask); !again(errs[i]) {
						return
					}
				}
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
				for range 20 { // a store may be too busy
					if grants[i], errs[i] = subject.Acquire(p.Context(), asks[i]); !again(errs[i]) {
						return
					}
				}
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
}
