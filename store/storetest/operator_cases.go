package storetest

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
)

var operatorCases = []protocolCase{
	{"a configuration creates the election and is the default of its leases", func(w *world) {
		l := w.configure(leadership.Config{LeaseDuration: time.Minute, LockDelay: 2 * time.Second})
		w.vacant(l, 0)
		if want := (leadership.Config{LeaseDuration: time.Minute, LockDelay: 2 * time.Second}); l.Config != want || l.Revision != 1 {
			w.Errorf("got %+v at revision %d, want %+v at 1", l.Config, l.Revision, want)
		}
		w.about("expiresIn", w.acquire("ann").ExpiresIn, time.Minute)
	}},
	{"a new configuration leaves the present lease as it is", func(w *world) {
		w.acquire("ann")
		w.configure(leadership.Config{LeaseDuration: 2 * time.Second})
		l := w.get()
		w.leads(l, "ann", 1)
		w.about("expiresIn", l.ExpiresIn, defaultLease)
		if l, err := w.a.Renew(w.Context(), w.of("ann", 1)); err != nil || l.LeaseDuration != defaultLease {
			w.Errorf("renewed: %v, %v; want a lease of %v", l.LeaseDuration, err, defaultLease)
		}
		w.release("ann", 1)
		if l := w.acquire("ann"); l.LeaseDuration != 2*time.Second {
			w.Errorf("the next lease lasts %v, want 2s", l.LeaseDuration)
		}
	}},
	{"a configuration that is so already changes nothing, whatever its condition", func(w *world) {
		c := leadership.ConfigureCommand{Config: leadership.Config{LockDelay: time.Second}}
		for range 2 {
			if l, err := w.a.Configure(w.Context(), leadership.ConfigureRequest{Election: jobs, ConfigureCommand: c}); err != nil || l.Revision != 1 {
				w.Fatalf("got revision %d, %v; want 1", l.Revision, err)
			}
		}
		c.Config.LockDelay, c.IfRevision = 2*time.Second, 1
		for range 2 { // as if the first reply was lost
			if l, err := w.b.Configure(w.Context(), leadership.ConfigureRequest{Election: jobs, ConfigureCommand: c}); err != nil || l.Revision != 2 {
				w.Fatalf("got revision %d, %v; want 2", l.Revision, err)
			}
		}
	}},
	{"an operator's condition that does not hold stops the change", func(w *world) {
		configure := func(e leadership.Election, if_ leadership.Revision) error {
			_, err := w.a.Configure(w.Context(), leadership.ConfigureRequest{Election: e, ConfigureCommand: leadership.ConfigureCommand{
				Config: leadership.Config{LockDelay: 3 * time.Second}, IfRevision: if_,
			}})
			return err
		}
		w.acquire("ann")
		w.refused(configure(jobs, 7), leadership.RevisionMismatch)
		w.refused(configure("never-seen", 1), leadership.RevisionMismatch)
		w.refused(configure("never-seen", leadership.AnyRevision), leadership.RevisionMismatch)
		_, err := w.a.Delete(w.Context(), leadership.DeleteRequest{Election: jobs, DeleteCommand: leadership.DeleteCommand{IfRevision: 7, Force: true}})
		w.refused(err, leadership.RevisionMismatch)
		w.leads(w.get(), "ann", 1)
		if err := configure(jobs, leadership.AnyRevision); err != nil {
			w.Errorf("any revision: %v", err)
		}
		if err := configure("fresh", 0); err != nil {
			w.Errorf("no condition: %v", err)
		}
	}},
	{"after a lease that ended without release the election is locked for the lock delay", func(w *world) {
		w.configure(leadership.Config{LeaseDuration: time.Minute, LockDelay: time.Minute})
		w.acquire("ann")
		w.advance(90 * time.Second) // 30 s into the lock
		for _, who := range []string{"bob", "ann"} {
			e := w.refusedAcquire(who, leadership.LeaseHeld)
			if e.Reason != leadership.ReasonLockDelay || e.RetryAfter > 31*time.Second || e.RetryAfter < 5*time.Second {
				w.Errorf("%s: got %s, retry after %v; want %s and about 30s", who, e.Reason, e.RetryAfter, leadership.ReasonLockDelay)
			}
		}
		l := w.get()
		w.vacant(l, 1)
		w.about("lockedFor", l.LockedFor, 31*time.Second)
		w.advance(31 * time.Second)
		w.leads(w.acquire("bob"), "bob", 2)
	}},
	{"after a release the lock delay does not run", func(w *world) {
		w.configure(leadership.Config{LockDelay: time.Hour})
		w.acquire("ann")
		w.release("ann", 1)
		w.leads(w.acquire("bob"), "bob", 2)
	}},
	{"a lock that runs is kept by the record of the expiry", func(w *world) {
		w.configure(leadership.Config{LeaseDuration: time.Minute, LockDelay: time.Minute})
		w.acquire("ann")
		w.advance(90 * time.Second)
		w.release("ann", 1) // too late: recorded as expired
		w.refusedAcquire("bob", leadership.LeaseHeld)
		w.advance(31 * time.Second)
		w.leads(w.acquire("bob"), "bob", 2)
	}},
	{"a held election is deleted only by force", func(w *world) {
		w.acquire("ann")
		_, err := w.b.Delete(w.Context(), leadership.DeleteRequest{Election: jobs})
		w.refused(err, leadership.LeaseHeld)
		w.leads(w.get(), "ann", 1)
		w.delete(true)
		_, err = w.a.Renew(w.Context(), w.of("ann", 1))
		w.refused(err, leadership.LeaseLost)
		w.release("ann", 1)
	}},
	{"a deleted election cannot be read or led, and deleting it again changes nothing", func(w *world) {
		_, err := w.a.Delete(w.Context(), leadership.DeleteRequest{Election: jobs})
		w.refused(err, leadership.NotFound)
		w.configure(leadership.Config{})
		w.delete(false)
		w.delete(false)
		_, err = w.b.Get(w.Context(), jobs)
		w.refused(err, leadership.NotFound)
		w.refusedAcquire("ann", leadership.ElectionDeleted)
		if got := w.history(); len(got) != 2 {
			w.Errorf("got %v, want 2 events", got)
		}
	}},
	{"brought back, an election goes on from its token and its revision", func(w *world) {
		w.acquire("ann")
		w.release("ann", 1)
		w.delete(false)
		l := w.configure(leadership.Config{LeaseDuration: time.Minute})
		w.vacant(l, 1)
		if l.Revision != 4 || l.Config.LeaseDuration != time.Minute {
			w.Errorf("got revision %d and %+v, want 4 and a minute", l.Revision, l.Config)
		}
		w.leads(w.acquire("ann"), "ann", 2)
	}},
	{"after a forced deletion no grant comes before the old lease would have ended", func(w *world) {
		w.acquire("ann")
		w.delete(true)
		w.configure(leadership.Config{LeaseDuration: time.Minute})
		e := w.refusedAcquire("bob", leadership.LeaseHeld)
		if e.Reason != leadership.ReasonLockDelay {
			w.Errorf("reason %s, want %s", e.Reason, leadership.ReasonLockDelay)
		}
		w.advance(defaultLease + time.Second)
		w.leads(w.acquire("bob"), "bob", 2)
	}},
	{"elections are listed by prefix, in the order of their names, page by page, without the deleted ones", func(w *world) {
		for i := range 7 {
			w.create(leadership.Election(fmt.Sprintf("team-a.%d", i)))
		}
		w.create("team-b.0")
		w.create("team-a")
		_, err := w.a.Delete(w.Context(), leadership.DeleteRequest{Election: "team-a.3"})
		if err != nil {
			w.Fatal(err)
		}
		want := []leadership.Election{"team-a.0", "team-a.1", "team-a.2", "team-a.4", "team-a.5", "team-a.6"}
		if diff := cmp.Diff(want, w.names("team-a.", 2)); diff != "" {
			w.Errorf("names (-want +got):\n%s", diff)
		}
		if got := w.names("", 100); len(got) != 8 {
			w.Errorf("got %v, want all 8", got)
		}
		if got := w.names("nothing", 100); len(got) != 0 {
			w.Errorf("got %v, want none", got)
		}
	}},
}

func (w *world) create(e leadership.Election) {
	w.Helper()
	if _, err := w.a.Configure(w.Context(), leadership.ConfigureRequest{Election: e}); err != nil {
		w.Fatal(err)
	}
}

// names lists all elections with the prefix, limit at a time.
func (w *world) names(prefix string, limit int) (names []leadership.Election) {
	w.Helper()
	r := leadership.ListRequest{Prefix: prefix, Limit: limit}
	for range 100 {
		page, err := w.b.List(w.Context(), r)
		if err != nil {
			w.Fatal(err)
		}
		if len(page.Leases) > limit {
			w.Errorf("a page has %d elections, want at most %d", len(page.Leases), limit)
		}
		for _, l := range page.Leases {
			names = append(names, l.Election)
		}
		if r.After = page.Next; r.After == "" {
			return names
		}
	}
	w.Fatal("the list does not end")
	return nil
}
