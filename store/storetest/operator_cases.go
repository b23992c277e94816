package storetest

import (
	"fmt"
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
	{"an election that must be new is configured once, and not after it was deleted", func(p *pair) {
		configure := func(lease time.Duration) error {
			_, err := p.b.Do(p.Context(), leadership.Configure{Election: "fresh", Config: leadership.Config{LeaseDuration: lease}, IfRevision: leadership.NeverSeen})
			return err
		}
		for range 2 { // as if the first reply was lost
			if err := configure(time.Minute); err != nil {
				p.Fatalf("configure a new election: %v", err)
			}
		}
		p.refused(configure(time.Hour), leadership.RevisionMismatch)
		if _, err := p.a.Do(p.Context(), leadership.Delete{Election: "fresh"}); err != nil {
			p.Fatal(err)
		}
		p.refused(configure(time.Hour), leadership.RevisionMismatch)
		p.refused(configure(time.Minute), leadership.RevisionMismatch)
		p.acquire("ann")
		p.refused(func() error {
			_, err := p.a.Do(p.Context(), leadership.Configure{Election: jobs, Config: leadership.Config{LockDelay: time.Hour}, IfRevision: leadership.NeverSeen})
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
	{"a held election is deleted only by force", func(p *pair) {
		p.acquire("ann")
		_, err := p.b.Do(p.Context(), leadership.Delete{Election: jobs})
		p.refused(err, leadership.LeaseHeld)
		p.leads(p.get(), "ann", 1)
		p.delete(true)
		_, err = p.a.Renew(p.Context(), p.of("ann", 1))
		p.refused(err, leadership.LeaseLost)
		p.release("ann", 1)
	}},
	{"a deleted election cannot be read or led, and deleting it again changes nothing", func(p *pair) {
		_, err := p.a.Do(p.Context(), leadership.Delete{Election: jobs})
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
		_, err := p.a.Do(p.Context(), leadership.Delete{Election: "team-a.3"})
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
	if _, err := p.a.Do(p.Context(), leadership.Configure{Election: e}); err != nil {
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
