package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
)

// The two versions in a fleet that is being upgraded: this program, and the next one, which keeps a
// description in a member that the older one does not know and must not ignore.
var (
	older = rule.Codec{}
	newer = rule.Codec{Next: true}
)

// fleet is a store that programs of two versions use.
type fleet struct {
	*handles
	open map[rule.Version]service.Store
}

// as returns a handle for a program of that version.
func (f *fleet) as(c rule.Codec) service.Store {
	f.Helper()
	v := c.Program()
	if f.open[v] != nil {
		return f.open[v]
	}
	if f.backing.Exclusive {
		f.restart()
	}
	f.open[v] = f.backing.OpenAs(f, c)
	return f.open[v]
}

// runUpgrade has cases of its own, because not every store can be open to two versions at once.
func runUpgrade(t *testing.T, h Harness) {
	for name, run := range map[string]func(*fleet){
		"two versions of the program share the data until one uses what the other must not ignore": (*fleet).upgrade,
		"an older program finds held and due elections, and refuses them by name":                  (*fleet).olderRefusesWhatItFinds,
		"an older program refuses, by name, what it has renewed before, and renews others":         (*fleet).olderRefusesWhatItHasRenewed,
		"what stands in an election is the same when the store is opened again":                    (*fleet).reopened,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(&fleet{handles: &handles{TB: t, backing: h(t)}, open: make(map[rule.Version]service.Store)})
		})
	}
}

func (f *fleet) upgrade() {
	f.update(f.as(older), "plain", put(time.Second))
	f.update(f.as(older), jobs, put(5*time.Second))
	f.update(f.as(older), jobs, acquire("ann", time.Minute))
	f.update(f.as(newer), jobs, carrying(unknownPolicy, unknownStanding))
	f.olderKeepsWhatItDoesNotKnow()
	f.update(f.as(newer), jobs, titled("red"))
	f.olderRefusesByName()
	f.backing.Advance(f, 2*time.Minute)
	f.olderRefusesByName()
	got := f.update(f.as(newer), jobs, acquire("cid", time.Minute)).Record
	if got.Token != 3 || got.Policy.Description != "red" || got.Policy.Unknown != unknownPolicy || got.Needs != newer.Program() {
		f.Errorf("the newer program goes on: got %+v", got)
	}
	if got := f.update(f.as(newer), jobs, titled("")).Record; got.Needs != newer.Program() {
		f.Errorf("with members that may need it: got %+v", got)
	}
	f.update(f.as(newer), jobs, carrying("", ""))
	if got := f.get(f.as(older), jobs).Record; got.Needs != 1 || got.Policy.LockDelay != 7*time.Second {
		f.Errorf("once the feature is no longer used: got %+v", got)
	}
	f.update(f.as(older), jobs, apply(leadership.Release{LeaseRequest: renewalOf(jobs, "cid", 3).Request()}))
}

// olderRefusesWhatItFinds keeps the tick of an older program from changing what it does not
// understand, and from missing that it is there.
func (f *fleet) olderRefusesWhatItFinds() {
	f.Helper()
	const held, due = "retiring-held", "retiring-due"
	for _, e := range []leadership.Election{held, due} {
		f.update(f.as(newer), e, apply(leadership.Configure{Config: leadership.Config{RetireAfter: 2 * time.Hour}}))
		f.update(f.as(newer), e, titled("red"))
	}
	f.update(f.as(newer), held, acquire("ann", 24*time.Hour))
	f.backing.Advance(f, 3*time.Hour)
	now := f.get(f.as(newer), due).Now
	for _, e := range []leadership.Election{held, due} {
		if _, err := f.as(older).Update(f.Context(), e, rule.Expect{}, acquire("bob", time.Minute)); !errors.Is(err, leadership.RecordTooNew) {
			f.Errorf("acquire %s by the older program: got %v, want %s", e, err, leadership.RecordTooNew)
		}
	}
	listing, err := f.as(older).Held(f.Context(), "", 10)
	if err != nil || len(listing.Snapshots) != 0 || !slices.Equal(listing.TooNew, []leadership.Election{held}) {
		f.Errorf("held, by the older program: got %+v, %v; want only the name", listing, err)
	}
	if n, err := service.New(f.as(older)).RetireAll(f.Context()); n != 0 || err != nil {
		f.Errorf("retire all by the older program: %d, %v", n, err)
	}
	if names, err := f.as(newer).Retirable(f.Context(), now, 10); err != nil || !slices.Equal(names, []leadership.Election{due}) {
		f.Errorf("to be retired: got %v, %v", names, err)
	}
}

// olderRefusesWhatItHasRenewed keeps an older program from renewing by what it remembers of a
// lease.
func (f *fleet) olderRefusesWhatItHasRenewed() {
	const plain, changed = "plain", "changed"
	for _, e := range []leadership.Election{plain, changed} {
		f.update(f.as(older), e, acquire("ann", time.Minute))
		if _, err := service.New(f.as(older)).Renew(f.Context(), leaseOf(e, "ann", 1)); err != nil {
			f.Errorf("%s, before the change: %v", e, err)
		}
	}
	f.update(f.as(newer), changed, titled("red"))
	for range 2 {
		if _, err := service.New(f.as(older)).Renew(f.Context(), leaseOf(plain, "ann", 1)); err != nil {
			f.Errorf("the older program does not renew an election that was not changed: %v", err)
		}
	}
	f.olderRefuses(changed, "ann", 1)
}

// olderRefuses makes calls with the older program, of which the holder has a lease, and expects it
// to name the election and the version that it needs, and the record to stay as it is.
func (f *fleet) olderRefuses(e leadership.Election, holder string, token leadership.Token) {
	f.Helper()
	want, events := f.get(f.as(newer), e).Record, len(f.events(f.as(newer), e))
	s, ctx := service.New(f.as(older)), f.Context()
	for name, call := range map[string]func() error{
		"get":   func() error { _, err := s.Get(ctx, e); return err },
		"renew": func() error { _, err := s.Renew(ctx, leaseOf(e, holder, token)); return err },
		"release": func() error {
			_, err := s.Do(ctx, leadership.Release{LeaseRequest: leaseOf(e, holder, token)})
			return err
		},
		"acquire": func() error {
			_, err := s.Acquire(ctx, leadership.AcquireRequest{Election: e, CandidateID: "dan", Key: keyOf("dan")})
			return err
		},
	} {
		err := call()
		needed := fmt.Sprintf("version %d", newer.Program())
		if !errors.Is(err, leadership.RecordTooNew) || !strings.Contains(err.Error(), fmt.Sprintf("%q", e)) || !strings.Contains(err.Error(), needed) {
			f.Errorf("%s by the older program: got %v, want %s of election %q that says %s", name, err, leadership.RecordTooNew, e, needed)
		}
	}
	if got := len(f.events(f.as(older), e)); got != events {
		f.Errorf("the older program reads %d events, want %d", got, events)
	}
	if diff := cmp.Diff(rounded(want), rounded(f.get(f.as(newer), e).Record)); diff != "" || len(f.events(f.as(newer), e)) != events {
		f.Errorf("the older program has changed the record (-before +after):\n%s", diff)
	}
}

// reopened has an election with a leader and one without, in which as much stands as can.
func (f *fleet) reopened() {
	s := service.New(f.as(older))
	ctx := f.Context()
	must := func(_ leadership.Lease, err error) {
		f.Helper()
		if err != nil && !errors.Is(err, leadership.LeaseLost) { // the answer to a report that trips
			f.Fatal(err)
		}
	}
	report := func(e leadership.Election, text string) {
		c := leaseOf(e, "ann", 1)
		c.Report = []byte(text)
		must(s.Renew(ctx, c))
	}
	order := func(e leadership.Election, c leadership.Order) {
		c.Reason, c.Actor = "<r> é", "ops@example.com"
		must(s.Do(ctx, c.In(e)))
	}
	for _, e := range []leadership.Election{jobs, "deposed"} {
		must(s.Do(ctx, leadership.Configure{Election: e, Config: leadership.Config{LeaseDuration: time.Hour, Term: termPolicy}}))
		f.update(f.as(older), e, acquire("ann", time.Hour))
		large := strings.Repeat("x", leadership.MaxReportBytes-120)
		report(e, `{"progress":9,"tokensUsed":7,"eta":"20m","health":"<ok> é","custom":{"a":[1.50,9007199254740993],"x":"`+large+`"}}`)
		order(e, leadership.Order{Kind: leadership.OrderBan, CandidateID: "bob", For: 30 * 24 * time.Hour})
		order(e, leadership.Order{Kind: leadership.OrderPause, For: time.Hour, Mode: leadership.PauseDrain})
		order(e, leadership.Order{Kind: leadership.OrderApprove, Token: 1})
		must(s.Do(ctx, leadership.RequestApproval{LeaseRequest: leaseOf(e, "ann", 1), Note: "n"}))
		must(s.Do(ctx, leadership.Judge{Election: e, Token: 1, Verdict: leadership.VerdictBad, Evidence: "e", Actor: "vera"}))
	}
	report("deposed", `{"progress":9,"tokensUsed":101}`)
	for _, e := range []leadership.Election{jobs, "deposed"} {
		want := f.get(f.as(older), e)
		f.restart()
		if diff := cmp.Diff(rounded(want.Record), rounded(f.get(f.as(older), e).Record)); diff != "" {
			f.Errorf("%s, opened again (-before +after):\n%s", e, diff)
		}
		if got := f.get(f.as(older), e).Record.Standing; got != want.Record.Standing || got == (rule.Standing{}) {
			f.Errorf("%s, opened again: got %+v\nwant %+v", e, got, want.Record.Standing)
		}
	}
}

// restart closes all handles.
func (f *fleet) restart() {
	f.Helper()
	for _, s := range f.open {
		require.NoError(f, s.Close())
	}
	clear(f.open)
}

// carrying is a change that writes members that neither program knows.
func carrying(policy, standing string) func(rule.Snapshot) (rule.Change, error) {
	return func(s rule.Snapshot) (rule.Change, error) {
		ch := rule.Change{Record: s.Record, Quiet: true}
		ch.Record.Policy.Unknown, ch.Record.Standing.Unknown = policy, standing
		return ch, nil
	}
}

// titled is a change of the member that only the newer program knows.
func titled(title string) func(rule.Snapshot) (rule.Change, error) {
	return func(s rule.Snapshot) (rule.Change, error) {
		ch := rule.Change{Record: s.Record, Quiet: true}
		ch.Record.Policy.Description = title
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
		if _, err := service.New(s).Renew(f.Context(), leaseOf(jobs, "ann", 1)); err != nil {
			f.Errorf("renew: %v", err)
		}
	}
	f.update(s, jobs, put(7*time.Second))
	f.update(s, jobs, apply(leadership.Release{LeaseRequest: renewalOf(jobs, "ann", 1).Request()}))
	last := f.update(s, jobs, acquire("bob", time.Minute)).Record
	got := f.get(f.as(newer), jobs).Record
	if !sameRecord(got, last) || got.Policy.Unknown != unknownPolicy || got.Standing.Unknown != unknownStanding || got.Policy.LockDelay != 7*time.Second {
		f.Errorf("the newer program reads %+v\nthe older one wrote %+v", got, last)
	}
}

// olderRefusesByName expects the older program to refuse jobs, and to list it as too new.
func (f *fleet) olderRefusesByName() {
	f.Helper()
	f.olderRefuses(jobs, "bob", 2)
	s := f.as(older)
	if a := s.Renew(f.Context(), []rule.Renewal{renewalOf(jobs, "bob", 2)})[0]; a.Err == nil {
		f.Errorf("the older store has renewed: %+v", a.Snapshot())
	}
	listing, err := s.List(f.Context(), "", "", 10)
	if err != nil || len(listing.Snapshots) != 1 || listing.Snapshots[0].Record.Election != "plain" ||
		!slices.Equal(listing.TooNew, []leadership.Election{jobs}) || len(listing.Untrusted) != 0 {
		f.Errorf("list: got %+v, %v", listing, err)
	}
}
