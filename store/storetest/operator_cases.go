package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
)

var operatorCases = []protocolCase{
	{"a configuration creates the election and is the default of its leases", func(p *pair) {
		l := p.configure(leadership.Config{LeaseDuration: time.Minute, LockDelay: 2 * time.Second, Description: "the weekly report"})
		p.vacant(l, 0)
		if want := (leadership.Config{LeaseDuration: time.Minute, LockDelay: 2 * time.Second, Description: "the weekly report"}); l.Config != want || l.Revision != 1 {
			p.Errorf("got %+v at revision %d, want %+v at 1", l.Config, l.Revision, want)
		}
		p.about("expiresIn", p.acquire("ann").ExpiresIn, time.Minute)
	}},
	{"a lease is no longer than the election allows", func(p *pair) {
		want := leadership.Config{LeaseDuration: 2 * time.Second, MaxLeaseDuration: time.Minute}
		if l := p.configure(want); l.Config != want || p.get().Config != want {
			p.Errorf("got %+v, and read %+v; want %+v", l.Config, p.get().Config, want)
		}
		ask := p.ask("ann")
		ask.LeaseDuration = time.Minute + time.Millisecond
		_, err := p.a.Acquire(p.Context(), ask)
		if e := p.refused(err, leadership.InvalidArgument); e.Field != "leaseDuration" {
			p.Errorf("the wrong field is %q", e.Field)
		}
		ask.LeaseDuration = time.Minute
		if g, err := p.a.Acquire(p.Context(), ask); err != nil || g.LeaseDuration != time.Minute {
			p.Errorf("as long as allowed: %v, %v", g.LeaseDuration, err)
		}
		p.configure(leadership.Config{LeaseDuration: 2 * time.Second, MaxLeaseDuration: 2 * time.Second})
		if l, err := p.b.Renew(p.Context(), p.of("ann", 1)); err != nil || l.LeaseDuration != time.Minute {
			p.Errorf("renewed under a lower limit: %v, %v; want a lease of 1m", l.LeaseDuration, err)
		}
	}},
	{"an unlock ends a lease and a lock, once what it risks is acknowledged", func(p *pair) {
		unlock := func(acknowledge string) (leadership.Lease, error) {
			return p.b.Unlock(p.Context(), leadership.UnlockRequest{Election: jobs, UnlockCommand: leadership.UnlockCommand{
				Reason: "the host is gone", Actor: "olga", Acknowledge: acknowledge,
			}})
		}
		acknowledged := func() leadership.Lease {
			p.Helper()
			_, err := unlock("yes")
			_, sentence, _ := strings.Cut(p.refused(err, leadership.LeaseHeld).Detail, "with exactly this acknowledge: ")
			l, err := unlock(sentence)
			if err != nil {
				p.Fatalf("acknowledged with %q: %v", sentence, err)
			}
			return l
		}
		ask := p.ask("ann")
		ask.LeaseDuration = leadership.MaxLeaseDuration
		if _, err := p.a.Acquire(p.Context(), ask); err != nil {
			p.Fatal(err)
		}
		p.vacant(acknowledged(), 1)
		_, err := p.a.Renew(p.Context(), p.of("ann", 1))
		p.refused(err, leadership.LeaseLost)
		p.leads(p.acquire("bob"), "bob", 2)
		p.delete(true)
		p.configure(leadership.Config{})
		p.refusedAcquire("ann", leadership.LeaseHeld)
		p.vacant(acknowledged(), 2)
		p.leads(p.acquire("ann"), "ann", 3)
	}},
	{"a new configuration leaves the present lease as it is", func(p *pair) {
		p.acquire("ann")
		p.configure(leadership.Config{LeaseDuration: 2 * time.Second})
		l := p.get()
		p.leads(l, "ann", 1)
		p.about("expiresIn", l.ExpiresIn, defaultLease)
		if l, err := p.a.Renew(p.Context(), p.of("ann", 1)); err != nil || l.LeaseDuration != defaultLease {
			p.Errorf("renewed: %v, %v; want a lease of %v", l.LeaseDuration, err, defaultLease)
		}
		p.release("ann", 1)
		if l := p.acquire("ann"); l.LeaseDuration != 2*time.Second {
			p.Errorf("the next lease lasts %v, want 2s", l.LeaseDuration)
		}
	}},
	{"a configuration that is so already changes nothing, whatever its condition", func(p *pair) {
		c := leadership.ConfigureCommand{Config: leadership.Config{LockDelay: time.Second}}
		for range 2 {
			if l, err := p.a.Configure(p.Context(), leadership.ConfigureRequest{Election: jobs, ConfigureCommand: c}); err != nil || l.Revision != 1 {
				p.Fatalf("got revision %d, %v; want 1", l.Revision, err)
			}
		}
		c.Config.LockDelay, c.IfRevision = 2*time.Second, 1
		for range 2 { // as if the first reply was lost
			if l, err := p.b.Configure(p.Context(), leadership.ConfigureRequest{Election: jobs, ConfigureCommand: c}); err != nil || l.Revision != 2 {
				p.Fatalf("got revision %d, %v; want 2", l.Revision, err)
			}
		}
	}},
	{"an operator's condition that does not hold stops the change", func(p *pair) {
		configure := func(e leadership.Election, if_ leadership.Revision) error {
			_, err := p.a.Configure(p.Context(), leadership.ConfigureRequest{Election: e, ConfigureCommand: leadership.ConfigureCommand{
				Config: leadership.Config{LockDelay: 3 * time.Second}, IfRevision: if_,
			}})
			return err
		}
		p.acquire("ann")
		p.refused(configure(jobs, 7), leadership.RevisionMismatch)
		p.refused(configure("never-seen", 1), leadership.RevisionMismatch)
		_, err := p.a.Delete(p.Context(), leadership.DeleteRequest{Election: jobs, DeleteCommand: leadership.DeleteCommand{IfRevision: 7, Force: true}})
		p.refused(err, leadership.RevisionMismatch)
		p.leads(p.get(), "ann", 1)
		if err := configure("fresh", 0); err != nil {
			p.Errorf("no condition: %v", err)
		}
	}},
	{"an election that must be new is configured once, and not after it was deleted", func(p *pair) {
		configure := func(lease time.Duration) error {
			_, err := p.b.Configure(p.Context(), leadership.ConfigureRequest{Election: "fresh", ConfigureCommand: leadership.ConfigureCommand{
				Config: leadership.Config{LeaseDuration: lease}, IfRevision: leadership.NeverSeen,
			}})
			return err
		}
		for range 2 { // as if the first reply was lost
			if err := configure(time.Minute); err != nil {
				p.Fatalf("configure a new election: %v", err)
			}
		}
		p.refused(configure(time.Hour), leadership.RevisionMismatch)
		if _, err := p.a.Delete(p.Context(), leadership.DeleteRequest{Election: "fresh"}); err != nil {
			p.Fatal(err)
		}
		p.refused(configure(time.Hour), leadership.RevisionMismatch)
		p.refused(configure(time.Minute), leadership.RevisionMismatch)
		p.acquire("ann")
		p.refused(func() error {
			_, err := p.a.Configure(p.Context(), leadership.ConfigureRequest{Election: jobs, ConfigureCommand: leadership.ConfigureCommand{
				Config: leadership.Config{LockDelay: time.Hour}, IfRevision: leadership.NeverSeen,
			}})
			return err
		}(), leadership.RevisionMismatch)
	}},
	{"after a lease that ended without release the election is locked for the lock delay", func(p *pair) {
		p.configure(leadership.Config{LeaseDuration: time.Minute, LockDelay: time.Minute})
		p.acquire("ann")
		p.advance(90 * time.Second) // 30 s into the lock
		for _, who := range []string{"bob", "ann"} {
			e := p.refusedAcquire(who, leadership.LeaseHeld)
			if e.Reason != leadership.ReasonLockDelay || e.RetryAfter > 31*time.Second || e.RetryAfter < 5*time.Second {
				p.Errorf("%s: got %s, retry after %v; want %s and about 30s", who, e.Reason, e.RetryAfter, leadership.ReasonLockDelay)
			}
		}
		l := p.get()
		p.vacant(l, 1)
		p.about("lockedFor", l.LockedFor, 31*time.Second)
		p.advance(31 * time.Second)
		p.leads(p.acquire("bob"), "bob", 2)
	}},
	{"after a release the lock delay does not run", func(p *pair) {
		p.configure(leadership.Config{LockDelay: time.Hour})
		p.acquire("ann")
		p.release("ann", 1)
		p.leads(p.acquire("bob"), "bob", 2)
	}},
	{"a lock that runs is kept by the record of the expiry", func(p *pair) {
		p.configure(leadership.Config{LeaseDuration: time.Minute, LockDelay: time.Minute})
		p.acquire("ann")
		p.advance(90 * time.Second)
		p.release("ann", 1) // too late: recorded as expired
		p.refusedAcquire("bob", leadership.LeaseHeld)
		p.advance(31 * time.Second)
		p.leads(p.acquire("bob"), "bob", 2)
	}},
	{"a held election is deleted only by force", func(p *pair) {
		p.acquire("ann")
		_, err := p.b.Delete(p.Context(), leadership.DeleteRequest{Election: jobs})
		p.refused(err, leadership.LeaseHeld)
		p.leads(p.get(), "ann", 1)
		p.delete(true)
		_, err = p.a.Renew(p.Context(), p.of("ann", 1))
		p.refused(err, leadership.LeaseLost)
		p.release("ann", 1)
	}},
	{"a deleted election cannot be read or led, and deleting it again changes nothing", func(p *pair) {
		_, err := p.a.Delete(p.Context(), leadership.DeleteRequest{Election: jobs})
		p.refused(err, leadership.NotFound)
		p.configure(leadership.Config{})
		p.delete(false)
		p.delete(false)
		_, err = p.b.Get(p.Context(), jobs)
		p.refused(err, leadership.NotFound)
		p.refusedAcquire("ann", leadership.ElectionDeleted)
		if got := p.history(); len(got) != 2 {
			p.Errorf("got %v, want 2 events", got)
		}
	}},
	{"brought back, an election goes on from its token and its revision", func(p *pair) {
		p.acquire("ann")
		p.release("ann", 1)
		p.delete(false)
		l := p.configure(leadership.Config{LeaseDuration: time.Minute})
		p.vacant(l, 1)
		if l.Revision != 4 || l.Config.LeaseDuration != time.Minute {
			p.Errorf("got revision %d and %+v, want 4 and a minute", l.Revision, l.Config)
		}
		p.leads(p.acquire("ann"), "ann", 2)
	}},
	{"after a forced deletion no grant comes before the old lease would have ended", func(p *pair) {
		p.acquire("ann")
		p.delete(true)
		p.configure(leadership.Config{LeaseDuration: time.Minute})
		e := p.refusedAcquire("bob", leadership.LeaseHeld)
		if e.Reason != leadership.ReasonLockDelay {
			p.Errorf("reason %s, want %s", e.Reason, leadership.ReasonLockDelay)
		}
		p.advance(defaultLease + time.Second)
		p.leads(p.acquire("bob"), "bob", 2)
	}},
	{"elections are listed by prefix, in the order of their names, page by page, without the deleted ones", func(p *pair) {
		for i := range 7 {
			p.create(leadership.Election(fmt.Sprintf("team-a.%d", i)))
		}
		p.create("team-b.0")
		p.create("team-a")
		_, err := p.a.Delete(p.Context(), leadership.DeleteRequest{Election: "team-a.3"})
		if err != nil {
			p.Fatal(err)
		}
		want := []leadership.Election{"team-a.0", "team-a.1", "team-a.2", "team-a.4", "team-a.5", "team-a.6"}
		if diff := cmp.Diff(want, p.names("team-a.", 2)); diff != "" {
			p.Errorf("names (-want +got):\n%s", diff)
		}
		if got := p.names("", 100); len(got) != 8 {
			p.Errorf("got %v, want all 8", got)
		}
		if got := p.names("nothing", 100); len(got) != 0 {
			p.Errorf("got %v, want none", got)
		}
	}},
}

func (p *pair) create(e leadership.Election) {
	p.Helper()
	if _, err := p.a.Configure(p.Context(), leadership.ConfigureRequest{Election: e}); err != nil {
		p.Fatal(err)
	}
}

// names lists all elections with the prefix, limit at a time.
func (p *pair) names(prefix string, limit int) (names []leadership.Election) {
	p.Helper()
	r := leadership.ListRequest{Prefix: prefix, Limit: limit}
	for range 100 {
		page, err := p.b.List(p.Context(), r)
		if err != nil {
			p.Fatal(err)
		}
		if len(page.Leases) > limit {
			p.Errorf("a page has %d elections, want at most %d", len(page.Leases), limit)
		}
		for _, l := range page.Leases {
			names = append(names, l.Election)
		}
		if r.After = page.Next; r.After == "" {
			return names
		}
	}
	p.Fatal("the list does not end")
	return nil
}
