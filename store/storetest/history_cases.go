package storetest

import (
	"context"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
)

var historyCases = []protocolCase{
	{"each change is an event, each term has one that begins it and one that ends it", func(p *pair) {
		p.configure(leadership.Config{LeaseDuration: time.Minute})
		p.acquire("ann")
		p.release("ann", 1)
		p.acquire("bob")
		p.advance(time.Minute + time.Second)
		p.acquire("cid")
		p.delete(true)
		p.configure(leadership.Config{LeaseDuration: time.Minute})
		want := []string{
			"1 configured leader= token=0 previous=",
			"2 acquired leader=ann token=1 previous=",
			"3 released leader= token=1 previous=ann",
			"4 acquired leader=bob token=2 previous=",
			"5 expired leader= token=2 previous=bob",
			"6 acquired leader=cid token=3 previous=",
			"7 deleted leader= token=3 previous=cid",
			"8 recreated leader= token=3 previous=",
		}
		if diff := cmp.Diff(want, p.history()); diff != "" {
			p.Errorf("history (-want +got):\n%s", diff)
		}
	}},
	{"a renewal, a refusal and a repetition leave no event", func(p *pair) {
		p.acquire("ann")
		p.acquire("ann")
		p.refusedAcquire("bob", leadership.LeaseHeld)
		if _, err := p.a.Renew(p.Context(), p.of("ann", 1)); err != nil {
			p.Fatal(err)
		}
		p.release("ann", 1)
		p.release("ann", 1)
		if got := p.history(); len(got) != 2 {
			p.Errorf("got %d events, want 2:\n%v", len(got), got)
		}
	}},
	{"a lease that ran out is recorded as expired, also by its own late release", func(p *pair) {
		p.acquire("ann")
		p.advance(defaultLease + time.Second)
		p.vacant(p.release("ann", 1), 1)
		want := []string{"1 acquired leader=ann token=1 previous=", "2 expired leader= token=1 previous=ann"}
		if diff := cmp.Diff(want, p.history()); diff != "" {
			p.Errorf("history (-want +got):\n%s", diff)
		}
	}},
	{"an event has the time of its change and the id of its request", func(p *pair) {
		l := p.acquire("ann")
		events, err := p.b.Events(p.Context(), leadership.EventsRequest{Election: jobs})
		if err != nil || len(events) != 1 {
			p.Fatalf("got %v, %v; want one event", events, err)
		}
		if d := events[0].At.Sub(l.ReadAt).Abs(); d > time.Millisecond {
			p.Errorf("the event is of %v, its change of %v", events[0].At, l.ReadAt)
		}
		ctx := leadership.WithRequestID(p.Context(), "request-7")
		if _, err := p.a.Do(ctx, leadership.Release{LeaseRequest: p.of("ann", 1)}); err != nil {
			p.Fatal(err)
		}
		p.requestID(2, "request-7")
	}},
}

// requestID expects that the change of that revision was made by that request.
func (p *pair) requestID(revision leadership.Revision, want string) {
	p.Helper()
	events, err := p.b.Events(context.Background(), leadership.EventsRequest{Election: jobs, After: revision - 1, Limit: 1})
	if err != nil || len(events) != 1 {
		p.Fatalf("got %v, %v; want one event", events, err)
	}
	if events[0].RequestID != want {
		p.Errorf("event %d was made by request %q, want %q", revision, events[0].RequestID, want)
	}
}
