package storetest

import (
	"context"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
)

var historyCases = []protocolCase{
	{"each change is an event, each term has one that begins it and one that ends it", func(w *world) {
		w.configure(leadership.Config{LeaseDuration: time.Minute})
		w.acquire("ann")
		w.release("ann", 1)
		w.acquire("bob")
		w.advance(time.Minute + time.Second)
		w.acquire("cid")
		w.delete(true)
		w.configure(leadership.Config{LeaseDuration: time.Minute})
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
		if diff := cmp.Diff(want, w.history()); diff != "" {
			w.Errorf("history (-want +got):\n%s", diff)
		}
	}},
	{"a renewal, a refusal and a repetition leave no event", func(w *world) {
		w.acquire("ann")
		w.acquire("ann")
		w.refusedAcquire("bob", leadership.LeaseHeld)
		if _, err := w.a.Renew(w.Context(), w.of("ann", 1)); err != nil {
			w.Fatal(err)
		}
		w.release("ann", 1)
		w.release("ann", 1)
		if got := w.history(); len(got) != 2 {
			w.Errorf("got %d events, want 2:\n%v", len(got), got)
		}
	}},
	{"a lease that ran out is recorded as expired, also by its own late release", func(w *world) {
		w.acquire("ann")
		w.advance(defaultLease + time.Second)
		w.vacant(w.release("ann", 1), 1)
		want := []string{"1 acquired leader=ann token=1 previous=", "2 expired leader= token=1 previous=ann"}
		if diff := cmp.Diff(want, w.history()); diff != "" {
			w.Errorf("history (-want +got):\n%s", diff)
		}
	}},
	{"history is read in parts, after a revision", func(w *world) {
		for range 3 {
			w.acquire("ann")
			w.release("ann", w.get().Token)
		}
		var got []leadership.Revision
		for after := leadership.Revision(0); ; {
			events, err := w.b.Events(w.Context(), leadership.EventsRequest{Election: jobs, After: after, Limit: 4})
			if err != nil {
				w.Fatal(err)
			}
			if len(events) == 0 {
				break
			}
			for _, e := range events {
				got = append(got, e.Revision)
			}
			after = events[len(events)-1].Revision
		}
		if diff := cmp.Diff([]leadership.Revision{1, 2, 3, 4, 5, 6}, got); diff != "" {
			w.Errorf("revisions (-want +got):\n%s", diff)
		}
	}},
	{"an election never seen has no history; a deleted one keeps its own", func(w *world) {
		_, err := w.a.Events(w.Context(), leadership.EventsRequest{Election: jobs})
		w.refused(err, leadership.NotFound)
		w.acquire("ann")
		w.delete(true)
		if got := w.history(); len(got) != 2 {
			w.Errorf("got %v, want 2 events", got)
		}
	}},
	{"an event has the time of its change and the id of its request", func(w *world) {
		l := w.acquire("ann")
		events, err := w.b.Events(w.Context(), leadership.EventsRequest{Election: jobs})
		if err != nil || len(events) != 1 {
			w.Fatalf("got %v, %v; want one event", events, err)
		}
		if d := events[0].At.Sub(l.ReadAt).Abs(); d > time.Millisecond {
			w.Errorf("the event is of %v, its change of %v", events[0].At, l.ReadAt)
		}
		ctx := leadership.WithRequestID(w.Context(), "request-7")
		if _, err := w.a.Release(ctx, w.of("ann", 1)); err != nil {
			w.Fatal(err)
		}
		w.requestID(2, "request-7")
	}},
}

// requestID expects that the change of that revision was made by that request.
func (w *world) requestID(revision leadership.Revision, want string) {
	w.Helper()
	events, err := w.b.Events(context.Background(), leadership.EventsRequest{Election: jobs, After: revision - 1, Limit: 1})
	if err != nil || len(events) != 1 {
		w.Fatalf("got %v, %v; want one event", events, err)
	}
	if events[0].RequestID != want {
		w.Errorf("event %d was made by request %q, want %q", revision, events[0].RequestID, want)
	}
}
