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
	{"the first acquire creates the election and grants token 1", func(w *world) {
		l := w.acquire("ann")
		w.leads(l, "ann", 1)
		w.about("expiresIn", l.ExpiresIn, defaultLease)
		w.about("renewIn", l.RenewIn, defaultLease/3)
		if l.LeaseDuration != defaultLease || l.Revision != 1 {
			w.Errorf("got a lease of %v at revision %d, want %v at 1", l.LeaseDuration, l.Revision, defaultLease)
		}
		w.leads(w.get(), "ann", 1)
	}},
	{"a key that the service chose is returned, and works", func(w *world) {
		g, err := w.a.Acquire(w.Context(), leadership.AcquireRequest{Election: jobs, CandidateID: "ann"})
		if err != nil {
			w.Fatal(err)
		}
		if g.Key == (leadership.Key{}) {
			w.Fatal("no key was returned")
		}
		_, err = w.b.Renew(w.Context(), leadership.LeaseRequest{Election: jobs, CandidateID: "ann", Key: g.Key, Token: g.Token})
		if err != nil {
			w.Errorf("renew with the key: %v", err)
		}
	}},
	{"a refused candidate is told the leader, the remaining time and the reason", func(w *world) {
		w.acquire("ann")
		e := w.refusedAcquire("bob", leadership.LeaseHeld)
		if e.Lease == nil || e.Lease.LeaderID != "ann" || e.Lease.Token != 1 || e.Reason != leadership.ReasonHeld {
			w.Errorf("got %+v, want ann's lease and the reason %s", e, leadership.ReasonHeld)
		}
		if e.RetryAfter < time.Second || e.RetryAfter > defaultLease+time.Second {
			w.Errorf("retry after %v, want about the rest of the lease", e.RetryAfter)
		}
	}},
	{"the leader that acquires again with its key renews: same token, no new revision", func(w *world) {
		first := w.acquire("ann")
		w.advance(defaultLease / 2)
		g, err := w.b.Acquire(w.Context(), w.ask("ann"))
		if err != nil {
			w.Fatal(err)
		}
		w.leads(g.Lease, "ann", first.Token)
		w.about("expiresIn", g.ExpiresIn, defaultLease)
		if g.Revision != first.Revision {
			w.Errorf("revision %d, want %d", g.Revision, first.Revision)
		}
	}},
	{"the same candidate with another key waits like everyone else", func(w *world) {
		w.acquire("ann")
		other := w.key("ann's second incarnation")
		ask := leadership.AcquireRequest{Election: jobs, CandidateID: "ann", Key: &other}
		_, err := w.a.Acquire(w.Context(), ask)
		if e := w.refused(err, leadership.LeaseHeld); e.Reason != leadership.ReasonIncarnation {
			w.Errorf("reason %s, want %s", e.Reason, leadership.ReasonIncarnation)
		}
		w.advance(defaultLease + time.Second)
		g, err := w.a.Acquire(w.Context(), ask)
		if err != nil {
			w.Fatal(err)
		}
		w.leads(g.Lease, "ann", 2)
		_, err = w.a.Renew(w.Context(), w.of("ann", 1))
		w.refused(err, leadership.LeaseLost)
	}},
	{"a renewal lets the lease start anew, and is no revision", func(w *world) {
		first := w.acquire("ann")
		for range 3 {
			w.advance(defaultLease * 2 / 3)
			for _, handle := range []Subject{w.a, w.b} {
				l, err := handle.Renew(w.Context(), w.of("ann", 1))
				if err != nil {
					w.Fatal(err)
				}
				w.leads(l, "ann", 1)
				w.about("expiresIn", l.ExpiresIn, defaultLease)
				if l.Revision != first.Revision {
					w.Errorf("revision %d, want %d", l.Revision, first.Revision)
				}
			}
		}
		w.leads(w.get(), "ann", 1)
	}},
	{"only the exact lease is renewed: election, candidate, key and token", func(w *world) {
		w.acquire("ann")
		w.release("ann", 1)
		w.acquire("bob") // token 2
		before := w.get()
		for name, r := range map[string]leadership.LeaseRequest{
			"an older token":    w.of("bob", 1),
			"a future token":    w.of("bob", 3),
			"another candidate": w.of("ann", 2),
			"another key":       {Election: jobs, CandidateID: "bob", Key: leadership.NewKey(), Token: 2},
			"another election":  {Election: "never-seen", CandidateID: "bob", Key: w.key("bob"), Token: 2},
		} {
			_, err := w.a.Renew(w.Context(), r)
			if e := w.refused(err, leadership.LeaseLost); r.Election == jobs && (e.Lease == nil || e.Lease.LeaderID != "bob") {
				w.Errorf("%s: got %+v, want to hear that bob leads", name, e)
			}
		}
		if after := w.get(); after.LastHeartbeat != before.LastHeartbeat || after.Revision != before.Revision {
			w.Errorf("a refused renewal has changed something: %+v, before %+v", after, before)
		}
	}},
	{"a late renewal does not revive the lease, even when no one took it", func(w *world) {
		w.acquire("ann")
		w.advance(defaultLease + time.Second)
		_, err := w.a.Renew(w.Context(), w.of("ann", 1))
		w.refused(err, leadership.LeaseLost)
		w.vacant(w.get(), 1)
	}},
	{"after the end another candidate leads, with the next token", func(w *world) {
		w.acquire("ann")
		w.advance(defaultLease + time.Second)
		w.leads(w.acquire("bob"), "bob", 2)
		_, err := w.b.Renew(w.Context(), w.of("ann", 1))
		if e := w.refused(err, leadership.LeaseLost); e.Lease == nil || e.Lease.LeaderID != "bob" || e.Lease.Token != 2 {
			w.Errorf("got %+v, want to hear that bob leads with token 2", e)
		}
	}},
	{"the former leader gets a new token too", func(w *world) {
		w.acquire("ann")
		w.advance(defaultLease + time.Second)
		w.leads(w.acquire("ann"), "ann", 2)
		w.release("ann", 2)
		w.leads(w.acquire("ann"), "ann", 3)
	}},
	{"after a release the next candidate leads at once", func(w *world) {
		w.acquire("ann")
		w.vacant(w.release("ann", 1), 1)
		w.leads(w.acquire("bob"), "bob", 2)
	}},
	{"a release twice is the same as once, and a successor is never touched", func(w *world) {
		w.acquire("ann")
		w.release("ann", 1)
		w.vacant(w.release("ann", 1), 1)
		w.acquire("bob")
		w.release("ann", 1)
		w.leads(w.get(), "bob", 2)
	}},
	{"a release with another key, candidate or a future token is refused", func(w *world) {
		w.acquire("ann")
		for name, r := range map[string]leadership.LeaseRequest{
			"another key":       {Election: jobs, CandidateID: "ann", Key: leadership.NewKey(), Token: 1},
			"another candidate": w.of("bob", 1),
			"a future token":    w.of("ann", 2),
		} {
			if _, err := w.b.Release(w.Context(), r); err == nil {
				w.Errorf("%s: the release was done", name)
			} else {
				w.refused(err, leadership.LeaseLost)
			}
		}
		w.leads(w.get(), "ann", 1)
	}},
	{"a longer lease takes effect when the leader acquires again, a shorter one at the next grant", func(w *world) {
		w.acquire("ann")
		for _, c := range []struct{ asked, want time.Duration }{
			{2 * defaultLease, 2 * defaultLease},
			{defaultLease / 2, 2 * defaultLease},
		} {
			ask := w.ask("ann")
			ask.LeaseDuration = c.asked
			g, err := w.a.Acquire(w.Context(), ask)
			if err != nil {
				w.Fatal(err)
			}
			if g.LeaseDuration != c.want || g.Token != 1 {
				w.Errorf("asked for %v: got %v with token %d, want %v with token 1", c.asked, g.LeaseDuration, g.Token, c.want)
			}
		}
	}},
	{"metadata are kept in canonical form, changed by the leader, and gone with its lease", func(w *world) {
		ask := w.ask("ann")
		ask.Metadata = []byte(` { "b": [1.0, 1e2, "<é>"], "a": {"x": null} } `)
		if _, err := w.a.Acquire(w.Context(), ask); err != nil {
			w.Fatal(err)
		}
		if diff := cmp.Diff(leadership.Metadata(`{"a":{"x":null},"b":[1,100,"<é>"]}`), w.get().Metadata); diff != "" {
			w.Errorf("metadata (-want +got):\n%s", diff)
		}
		w.acquire("ann") // without metadata: as before
		ask.Metadata = []byte(`{"a":2}`)
		if _, err := w.b.Acquire(w.Context(), ask); err != nil {
			w.Fatal(err)
		}
		if got := w.get(); got.Metadata != `{"a":2}` || got.Revision != 2 {
			w.Errorf("got %s at revision %d, want the new metadata at revision 2", got.Metadata, got.Revision)
		}
		if got := w.release("ann", 1); got.Metadata != "" {
			w.Errorf("a vacant election has metadata %s", got.Metadata)
		}
	}},
	{"a token is current while its lease lasts, and stale ever after", func(w *world) {
		check := func(token leadership.Token) error {
			_, err := w.b.CheckToken(w.Context(), leadership.TokenCheck{Election: jobs, Token: token})
			return err
		}
		w.refused(check(1), leadership.NotFound)
		w.acquire("ann")
		if err := check(1); err != nil {
			w.Errorf("the leader's token: %v", err)
		}
		w.refused(check(2), leadership.TokenStale)
		w.advance(defaultLease + time.Second)
		w.refused(check(1), leadership.TokenStale)
		w.acquire("bob")
		if e := w.refused(check(1), leadership.TokenStale); e.Lease == nil || e.Lease.Token != 2 {
			w.Errorf("got %+v, want to hear that token 2 is current", e)
		}
	}},
	{"of many candidates at once, one leads, and the others hear that it does", func(w *world) {
		const candidates = 12
		var wg sync.WaitGroup
		errs := make([]error, candidates)
		grants := make([]leadership.Grant, candidates)
		asks := make([]leadership.AcquireRequest, candidates)
		for i := range candidates {
			asks[i] = w.ask("c" + string(rune('a'+i)))
		}
		for i := range candidates {
			wg.Go(func() {
				subject := []Subject{w.a, w.b}[i%2]
				for range 20 { // a store may be too busy
					if grants[i], errs[i] = subject.Acquire(w.Context(), asks[i]); !again(errs[i]) {
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
				w.leads(grants[i].Lease, string(asks[i].CandidateID), 1)
			} else {
				w.refused(err, leadership.LeaseHeld)
			}
		}
		if winners != 1 {
			w.Errorf("%d candidates were told that they lead", winners)
		}
	}},
}
