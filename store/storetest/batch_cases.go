package storetest

import (
	"fmt"
	"time"

	"regent/leadership"
)

var batchCases = []protocolCase{
	{"a batch renews held leases, reports lost ones, and answers in order", func(w *world) {
		const n = 60
		batch := make([]leadership.LeaseRequest, n)
		for i := range n {
			ask := w.ask("ann")
			ask.Election = leadership.Election(fmt.Sprintf("shard-%03d", i))
			ask.LeaseDuration = long
			g, err := w.a.Acquire(w.Context(), ask)
			if err != nil {
				w.Fatal(err)
			}
			batch[i] = leadership.LeaseRequest{Election: ask.Election, CandidateID: "ann", Key: *ask.Key, Token: g.Token}
		}
		batch[7].Token = 99
		batch[8].Key = leadership.NewKey()
		batch[9].Election = "never-seen"
		w.advance(long / 2)
		for _, handle := range []Subject{w.a, w.b, w.a} {
			w.renewsAllBut(handle, batch, map[int]bool{7: true, 8: true, 9: true})
		}
	}},
	{"a batch that is empty, too long, or has an election twice is refused as a whole", func(w *world) {
		w.acquire("ann")
		r := w.of("ann", 1)
		many := make([]leadership.LeaseRequest, leadership.MaxBatch+1)
		for i := range many {
			many[i] = r
			many[i].Election = leadership.Election(fmt.Sprintf("e%d", i))
		}
		for _, batch := range [][]leadership.LeaseRequest{nil, {r, r}, many} {
			_, err := w.a.BatchRenew(w.Context(), batch)
			w.refused(err, leadership.InvalidArgument)
		}
		_, err := w.a.BatchCheckTokens(w.Context(), nil)
		w.refused(err, leadership.InvalidArgument)
	}},
	{"an entry of a batch that cannot be is refused alone", func(w *world) {
		w.acquire("ann")
		wrong := w.of("ann", 1)
		wrong.Election = "no such\xffname"
		results, err := w.b.BatchRenew(w.Context(), []leadership.LeaseRequest{wrong, w.of("ann", 1)})
		if err != nil || len(results) != 2 {
			w.Fatalf("got %v, %v; want two results", results, err)
		}
		w.refused(results[0].Err, leadership.InvalidArgument)
		if results[1].Err != nil {
			w.Errorf("the other entry: %v", results[1].Err)
		}
	}},
	{"a batch of tokens is checked one by one", func(w *world) {
		w.acquire("ann")
		results, err := w.b.BatchCheckTokens(w.Context(), []leadership.TokenCheck{{Election: "never-seen", Token: 1}, {Election: jobs, Token: 1}})
		if err != nil || len(results) != 2 {
			w.Fatalf("got %v, %v; want two results", results, err)
		}
		w.refused(results[0].Err, leadership.NotFound)
		if results[1].Err != nil {
			w.Errorf("the leader's token: %v", results[1].Err)
		}
		w.leads(results[1].Lease, "ann", 1)
	}},
}

func (w *world) renewsAllBut(handle Subject, batch []leadership.LeaseRequest, lost map[int]bool) {
	w.Helper()
	results, err := handle.BatchRenew(w.Context(), batch)
	if err != nil || len(results) != len(batch) {
		w.Fatalf("got %d results, %v; want %d", len(results), err, len(batch))
	}
	for i, r := range results {
		switch {
		case lost[i]:
			w.refused(r.Err, leadership.LeaseLost)
		case r.Err != nil:
			w.Errorf("%s: %v", batch[i].Election, r.Err)
		default:
			w.about(string(batch[i].Election)+" expiresIn", r.Lease.ExpiresIn, long)
			if r.Lease.Election != batch[i].Election || r.Lease.Token != batch[i].Token {
				w.Errorf("result %d is of %s with token %d, want %s with %d", i, r.Lease.Election, r.Lease.Token, batch[i].Election, batch[i].Token)
			}
		}
	}
}

// again says that a call may simply be repeated.
func again(err error) bool { return isAny(err, leadership.StoreUnavailable, leadership.OutcomeUnknown) }

var timeCases = []protocolCase{
	{"a lease ends by itself, in real time, and not before", func(w *world) {
		start := time.Now()
		ask := w.ask("ann")
		ask.LeaseDuration = leadership.MinLeaseDuration
		if _, err := w.a.Acquire(w.Context(), ask); err != nil {
			w.Fatal(err)
		}
		w.eventually("bob")
		if took := time.Since(start); took < leadership.MinLeaseDuration {
			w.Errorf("bob leads %v after ann was granted %v", took, leadership.MinLeaseDuration)
		}
		w.leads(w.get(), "bob", 2)
	}},
	{"expiresIn shrinks as the store's time passes", func(w *world) {
		w.acquire("ann")
		w.advance(10 * time.Second)
		w.about("expiresIn", w.get().ExpiresIn, defaultLease-10*time.Second)
		if l := w.get(); l.LeaseExpiration.Sub(l.ReadAt).Abs() > defaultLease {
			w.Errorf("read at %v, ends at %v", l.ReadAt, l.LeaseExpiration)
		}
	}},
}

// eventually lets the candidate ask, as often as it is told to, until it leads.
func (w *world) eventually(candidate string) {
	w.Helper()
	for range 50 {
		_, err := w.b.Acquire(w.Context(), w.ask(candidate))
		if err == nil {
			return
		}
		e := w.refused(err, leadership.LeaseHeld)
		select {
		case <-time.After(max(e.RetryAfter, time.Millisecond)): // as a client would
		case <-w.Context().Done():
		}
	}
	w.Fatalf("%s does not get to lead", candidate)
}
