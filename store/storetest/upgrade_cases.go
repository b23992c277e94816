package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
)

// The two versions in a fleet that is being upgraded. The older one knows none of the members that
// the newer one writes.
var (
	older = leadership.Codec{}
	newer = leadership.Codec{Version: leadership.ProgramVersion + 1}
)

// fleet is a store that programs of two versions use.
type fleet struct {
	*handles
	open map[leadership.Version]leadership.Store
}

// as returns a handle for a program of that version.
func (f *fleet) as(c leadership.Codec) leadership.Store {
	f.Helper()
	v := c.Program()
	if f.open[v] != nil {
		return f.open[v]
	}
	if f.backing.Exclusive {
		for _, s := range f.open {
			if err := s.Close(); err != nil {
				f.Fatal(err)
			}
		}
		clear(f.open)
	}
	f.open[v] = f.backing.OpenAs(f, c)
	return f.open[v]
}

// runUpgrade has cases of its own, because not every store can be open to two versions at once.
func runUpgrade(t *testing.T, h Harness) {
	for name, run := range map[string]func(*fleet){
		"two versions of the program share the data until one uses what the other must not ignore": (*fleet).upgrade,
		"an older program refuses, by name, an election that is to be retired":                     (*fleet).firstRefusesWhatRetires,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(&fleet{handles: &handles{TB: t, backing: h(t)}, open: make(map[leadership.Version]leadership.Store)})
		})
	}
}

func (f *fleet) upgrade() {
	f.update(f.as(older), "plain", put(time.Second))
	f.update(f.as(older), jobs, put(5*time.Second))
	f.update(f.as(older), jobs, acquire("ann", time.Minute))
	f.update(f.as(newer), jobs, carrying(unknownPolicy, unknownStanding, 0))
	f.olderKeepsWhatItDoesNotKnow()
	f.update(f.as(newer), jobs, carrying(`{"strategy":"priority"}`, unknownStanding, newer.Version))
	f.olderRefusesByName()
	f.backing.Advance(f, 2*time.Minute)
	f.olderRefusesByName()
	got := f.update(f.as(newer), jobs, acquire("cid", time.Minute)).Record
	if got.Token != 3 || got.Policy.Unknown != `{"strategy":"priority"}` || got.Needs != newer.Version {
		f.Errorf("the newer program goes on: got %+v", got)
	}
	f.update(f.as(newer), jobs, carrying("", "", 0))
	if got := f.get(f.as(older), jobs).Record; got.Needs != 1 || got.Policy.LockDelay != 7*time.Second {
		f.Errorf("once the feature is no longer used: got %+v", got)
	}
	f.update(f.as(older), jobs, func(s leadership.Snapshot) (leadership.Change, error) {
		return leadership.Release(s, renewalOf(jobs, "cid", 3))
	})
}

// first is the program that does not know RetireAfter.
var first = leadership.Codec{Version: 1}

// firstRefusesWhatRetires keeps a store's RetireAt from being out of date: a program that knows
// nothing of it changes no election that has one.
func (f *fleet) firstRefusesWhatRetires() {
	f.Helper()
	const held, due = "retiring-held", "retiring-due"
	for _, e := range []leadership.Election{held, due} {
		f.update(f.as(older), e, retireAfter(2*time.Hour))
	}
	f.update(f.as(older), held, acquire("ann", 24*time.Hour))
	f.backing.Advance(f, 3*time.Hour)
	now := f.get(f.as(older), due).Now
	for _, e := range []leadership.Election{held, due} {
		if _, err := f.as(first).Update(f.Context(), e, acquire("bob", time.Minute)); !errors.Is(err, leadership.RecordTooNew) {
			f.Errorf("acquire %s by the first program: got %v, want %s", e, err, leadership.RecordTooNew)
		}
	}
	listing, err := f.as(first).Held(f.Context(), "", 10)
	if err != nil || len(listing.Snapshots) != 0 || !slices.Equal(listing.TooNew, []leadership.Election{held}) {
		f.Errorf("held, by the first program: got %+v, %v; want only the name", listing, err)
	}
	if n, err := leadership.New(f.as(first)).RetireAll(f.Context()); n != 0 || err != nil {
		f.Errorf("retire all by the first program: %d, %v", n, err)
	}
	if names, err := f.as(older).Retirable(f.Context(), now, 10); err != nil || !slices.Equal(names, []leadership.Election{due}) {
		f.Errorf("to be retired: got %v, %v", names, err)
	}
}

// carrying is a change by a newer program: it writes members that the older one does not know, and,
// if needs is not 0, the lowest version that may decide on the record.
func carrying(policy, standing string, needs leadership.Version) func(leadership.Snapshot) (leadership.Change, error) {
	return func(s leadership.Snapshot) (leadership.Change, error) {
		ch := leadership.Change{Record: s.Record, Quiet: true}
		ch.Record.Policy.Unknown, ch.Record.Standing.Unknown = policy, standing
		ch.Record.Needs = max(ch.Record.Needs, needs)
		return ch, nil
	}
}

// olderKeepsWhatItDoesNotKnow writes with the older program in every way, and reads with both.
func (f *fleet) olderKeepsWhatItDoesNotKnow() {
	f.Helper()
	want := f.get(f.as(newer), jobs).Record
	s := f.as(older)
	if got := f.get(s, jobs).Record; !sameRecord(got, want) || got.Policy.LockDelay != 5*time.Second || got.Needs != 1 {
		f.Errorf("the older program reads %+v\nwant %+v", got, want)
	}
	for range 2 { // a store that does not remember the lease reads first
		if _, err := leadership.New(s).Renew(f.Context(), leaseOf(jobs, "ann", 1)); err != nil {
			f.Errorf("renew: %v", err)
		}
	}
	f.update(s, jobs, put(7*time.Second))
	f.update(s, jobs, func(s leadership.Snapshot) (leadership.Change, error) {
		return leadership.Release(s, renewalOf(jobs, "ann", 1))
	})
	last := f.update(s, jobs, acquire("bob", time.Minute)).Record
	got := f.get(f.as(newer), jobs).Record
	if !sameRecord(got, last) || got.Policy.Unknown != unknownPolicy || got.Standing.Unknown != unknownStanding || got.Policy.LockDelay != 7*time.Second {
		f.Errorf("the newer program reads %+v\nthe older one wrote %+v", got, last)
	}
}

// olderRefusesByName makes every call with the older program, and expects the record to stay as it
// is.
func (f *fleet) olderRefusesByName() {
	f.Helper()
	want, events := f.get(f.as(newer), jobs).Record, len(f.events(f.as(newer), jobs))
	s := f.as(older)
	service, ctx := leadership.New(s), f.Context()
	for name, call := range map[string]func() error{
		"get":     func() error { _, err := service.Get(ctx, jobs); return err },
		"renew":   func() error { _, err := service.Renew(ctx, leaseOf(jobs, "bob", 2)); return err },
		"release": func() error { _, err := service.Release(ctx, leaseOf(jobs, "bob", 2)); return err },
		"expire":  func() error { _, err := service.Expire(ctx, jobs); return err },
		"check": func() error {
			_, err := service.CheckToken(ctx, leadership.TokenCheck{Election: jobs, Token: 2})
			return err
		},
		"configure": func() error {
			_, err := service.Configure(ctx, leadership.ConfigureRequest{Election: jobs})
			return err
		},
		"acquire": func() error {
			_, err := service.Acquire(ctx, leadership.AcquireRequest{Election: jobs, CandidateID: "bob", Key: keyOf("bob")})
			return err
		},
		"delete": func() error {
			_, err := service.Delete(ctx, leadership.DeleteRequest{Election: jobs, DeleteCommand: leadership.DeleteCommand{Force: true}})
			return err
		},
	} {
		err := call()
		needed := fmt.Sprintf("version %d", newer.Version)
		if !errors.Is(err, leadership.RecordTooNew) || !strings.Contains(err.Error(), `"jobs"`) || !strings.Contains(err.Error(), needed) {
			f.Errorf("%s by the older program: got %v, want %s of election %q that says %s", name, err, leadership.RecordTooNew, jobs, needed)
		}
	}
	if a := s.Renew(ctx, []leadership.Renewal{renewalOf(jobs, "bob", 2)})[0]; a.Err == nil {
		f.Errorf("the older store has renewed: %+v", a.Snapshot)
	}
	if n, err := service.ExpireAll(ctx); n != 0 || err != nil {
		f.Errorf("expire all: %d, %v", n, err)
	}
	listing, err := s.List(ctx, "", "", 10)
	if err != nil || len(listing.Snapshots) != 1 || listing.Snapshots[0].Record.Election != "plain" ||
		!slices.Equal(listing.TooNew, []leadership.Election{jobs}) || len(listing.Untrusted) != 0 {
		f.Errorf("list: got %+v, %v", listing, err)
	}
	if census, err := service.Census(ctx, ""); err != nil || len(census.Leases) != 1 {
		f.Errorf("census: got %+v, %v", census, err)
	}
	if got := len(f.events(s, jobs)); got != events {
		f.Errorf("the older program reads %d events, want %d", got, events)
	}
	if diff := cmp.Diff(rounded(want), rounded(f.get(f.as(newer), jobs).Record)); diff != "" || len(f.events(f.as(newer), jobs)) != events {
		f.Errorf("the older program has changed the record (-before +after):\n%s", diff)
	}
}
