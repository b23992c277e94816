package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/rule"
	"regent/leadership/service"
)

func TestAfterABackupIsRestoredAndRaisedNothingThatWasSeenComesAgain(t *testing.T) {
	t.Parallel()
	c := &clock{since: time.Hour}
	path := filepath.Join(t.TempDir(), "leases")
	backup := path + ".backup"
	first := c.file(t, path)
	populate(t, first, c.advance)
	first.Close()
	put(t, path, backup)

	lost := c.file(t, path)
	for range 3 {
		c.advance(2 * time.Hour)
		for _, e := range append(elections, "late") {
			tryAcquire(t, lost, e)
		}
	}
	seen := contents(t, lost)
	recent, err := lost.Since(t.Context(), seen["late"].Now.Add(-time.Hour), 1000)
	if err != nil || len(recent.Events) == 0 {
		t.Fatal(recent, err)
	}
	lost.Close()
	put(t, backup, path)
	c.advance(time.Second)

	restored := c.file(t, path)
	const above = 1000
	raising := Raising{Above: above, Lock: 30 * time.Minute}
	done, err := Raise(t.Context(), restored, raising)
	if err != nil || done.Raised != len(seen)-1 || done.Present != 0 || len(done.Untrusted) != 0 || done.LockedFor < 30*time.Minute {
		t.Fatalf("%+v, %v; want %d raised: all but the one that began after the backup", done, err, len(seen)-1)
	}
	again, err := Raise(t.Context(), restored, raising)
	if err != nil || again.Raised != 0 || again.Present != len(seen)-1 || again.LockedFor != done.LockedFor {
		t.Errorf("again: %+v, %v", again, err)
	}
	for e, was := range seen {
		if token, in, err := tryAcquire(t, restored, e); err == nil || in < 30*time.Minute && !was.Record.Deleted {
			t.Errorf("%s: granted %d, %v; in %v, want in 30m or more", e, token, err, in)
		}
	}
	c.advance(2 * time.Hour)
	for e, was := range seen {
		token, _, err := tryAcquire(t, restored, e)
		if was.Record.Deleted != errors.Is(err, leadership.ElectionDeleted) || err == nil && (token <= was.Record.Token || token != above+1) {
			t.Errorf("%s: granted %d, %v; %d was seen", e, token, err, was.Record.Token)
		}
	}
	oldCursorsAreTold(t, restored, seen, recent.Now)
	if _, err := Raise(t.Context(), restored, raising); !errors.Is(err, leadership.InvalidArgument) {
		t.Errorf("once servers are back: %v, want %s", err, leadership.InvalidArgument)
	}
}

// oldCursorsAreTold expects that a watcher that saw a lost revision of an election is told to begin
// anew, or gets all later events; and the same of a feed that had read up to the given instant.
func oldCursorsAreTold(t *testing.T, s service.Store, seen map[leadership.Election]rule.Snapshot, until time.Time) {
	t.Helper()
	i, err := instance.New(instance.Config{Store: s, Alone: true})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan struct{})
	go func() { defer close(ended); i.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	for e, was := range seen {
		_, watch, err := i.Watch(ctx, leadership.WatchRequest{Election: e, Resume: true, After: was.Record.Revision})
		if err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		if events, err := watch.Next(ctx); !errors.Is(err, leadership.HistoryCompacted) {
			t.Errorf("%s: who goes on after %d hears %v, %v; want %s", e, was.Record.Revision, events, err, leadership.HistoryCompacted)
		}
		watch.Close()
	}
	cursor, err := instance.ParseCursor(until.UTC().Format(time.RFC3339Nano))
	require.NoError(t, err)
	feed, err := i.Feed(ctx, leadership.Selection{}, cursor)
	require.NoError(t, err)
	defer feed.Close()
	heard := map[leadership.Election]leadership.Revision{}
	for len(heard) < len(seen) {
		items, err := feed.Next(ctx)
		require.NoError(t, err)
		for _, item := range items {
			heard[item.Event.Election] = item.Event.Revision
		}
	}
	for e, was := range seen {
		if heard[e] <= was.Record.Revision {
			t.Errorf("%s: the feed goes on with revision %d after %d", e, heard[e], was.Record.Revision)
		}
	}
}

// put copies a file.
func put(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from)), os.Chmod(to, 0o700)))
}

func TestReaderFromBeforeAMoveIsToldToBeginAnew(t *testing.T) {
	t.Parallel()
	c := &clock{}
	from, to := c.memory(0), c.memory(0)
	populate(t, from, c.advance)
	before := contents(t, from)
	c.advance(time.Second)
	if _, err := Move(t.Context(), from, to, "memory:"); err != nil {
		t.Fatal(err)
	}
	oldCursorsAreTold(t, to, before, before["held"].Now)
}

func TestARaiseThatWasCutAnywhereEndsLikeOneThatWasNot(t *testing.T) {
	t.Parallel()
	raising := Raising{Prefix: "held", Above: 500}
	scene := func() Store {
		c := &clock{}
		s := c.memory(0)
		populate(t, s, c.advance)
		return s
	}
	whole := scene()
	before := contents(t, whole)
	done, err := Raise(t.Context(), whole, raising)
	if err != nil || done.Raised != 2 {
		t.Fatalf("%+v, %v; want held and held.lock-delay", done, err)
	}
	want := contents(t, whole)
	for e, snap := range want {
		if raised := strings.HasPrefix(string(e), "held") || e == leadership.FloorElection; raised != (snap.Record.Token == 500) || !raised && !cmp.Equal(before[e], snap) {
			t.Errorf("%s is %+v", e, snap.Record)
		}
	}
	for _, after := range []bool{false, true} {
		for at, cut := 1, true; cut; at++ {
			s, calls := scene(), 0
			_, err := Raise(t.Context(), brittle(s, &calls, at, after), raising)
			if cut = calls >= at; cut != (err != nil) {
				t.Fatalf("call %d: %v", at, err)
			}
			again, err := Raise(t.Context(), s, raising)
			if diff := cmp.Diff(want, contents(t, s)); err != nil || diff != "" || again.Raised+again.Present != 2 {
				t.Fatalf("cut at call %d, done %v: %+v, %v (-want +got):\n%s", at, after, again, err, diff)
			}
		}
	}
}

func TestNothingIsRaisedIfOneElectionMayHaveBeenSeenBeyondThat(t *testing.T) {
	t.Parallel()
	c := &clock{}
	s := c.memory(0)
	populate(t, s, c.advance)
	before := contents(t, s)
	_, err := Raise(t.Context(), s, Raising{Above: 4})
	if !errors.Is(err, leadership.InvalidArgument) || !strings.Contains(err.Error(), `"twice" is at revision 4`) {
		t.Errorf("%v; want the election that is furthest", err)
	}
	if diff := cmp.Diff(before, contents(t, s)); diff != "" {
		t.Errorf("something was written: %s", diff)
	}
}

func TestWhatCannotBeTrustedIsNamedAndTheRestIsRaised(t *testing.T) {
	t.Parallel()
	c := &clock{}
	s := &spoilt{Store: c.memory(0), hidden: "held", corrupt: "released"}
	populate(t, s.Store, c.advance)
	corrupt := rule.LogID{Election: "held.lock-delay", Kind: rule.LogJournal}
	if _, err := s.Amend(t.Context(), corrupt, func(rule.Log) (rule.LogChange, error) { return rule.LogChange{Text: "{"}, nil }); err != nil {
		t.Fatal(err)
	}
	done, err := Raise(t.Context(), s, Raising{Above: 100})
	if diff := cmp.Diff([]string{"the journal of held.lock-delay"}, done.Logs); diff != "" {
		t.Error(diff)
	}
	put := leadership.CheckpointRequest{LeaseRequest: termOf("regent.relay", 1), Sequence: 2, Data: []byte("1")}
	if _, err := ledger(s).PutCheckpoint(t.Context(), put); !errors.Is(err, leadership.TokenStale) {
		t.Errorf("a log after the corrupt one: %v, want %s", err, leadership.TokenStale)
	}
	if diff := cmp.Diff([]leadership.Election{"held", "released"}, done.Untrusted); err != nil || diff != "" || done.Raised != len(elections)-2 {
		t.Errorf("%+v, %v (-want +got):\n%s", done, err, diff)
	}
}

func TestTheLogsOfSeatsAreRaisedWithTheirElection(t *testing.T) {
	t.Parallel()
	c := &clock{}
	restored := c.memory(0)
	s := service.New(restored)
	if _, err := s.Do(t.Context(), leadership.Configure{Election: "gpu", Config: leadership.Config{LeaseDuration: time.Minute, Seats: 1}}); err != nil {
		t.Fatal(err)
	}
	g, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: "gpu", CandidateID: "ann"})
	require.NoError(t, err)
	begin := func() error {
		_, err := ledger(restored).BeginEffect(t.Context(), leadership.EffectRequest{ID: "pay", LeaseRequest: leadership.LeaseRequest{Election: g.Election, CandidateID: "ann", Key: g.Key, Token: g.Token}})
		return err
	}
	require.NoError(t, begin())
	if _, err := Raise(t.Context(), restored, Raising{Above: 1000, Prefix: "gpu"}); err != nil {
		t.Fatal(err)
	}
	if err := begin(); !errors.Is(err, leadership.TokenStale) {
		t.Errorf("a leader from before the backup begins an effect: %v", err)
	}
}

// What began after the backup is nowhere in the store: an election, one with seats, a seat.
func TestWhatBeganAfterTheBackupGoesOnAboveTheFloor(t *testing.T) {
	t.Parallel()
	c := &clock{}
	restored := c.memory(0)
	populate(t, restored, c.advance)
	const above = 1000
	if _, err := Raise(t.Context(), restored, Raising{Above: above, Lock: time.Hour}); err != nil {
		t.Fatal(err)
	}
	s := serving(t, restored)
	configure := func(e leadership.Election, config leadership.Config) {
		t.Helper()
		if _, err := s.Do(t.Context(), leadership.Configure{Election: e, Config: config, IfRevision: leadership.NeverSeen}); err != nil {
			t.Fatal(err)
		}
	}
	configure("gpu", leadership.Config{LeaseDuration: time.Minute, Seats: 1})
	configure("configured.late", leadership.Config{LeaseDuration: time.Minute})
	all := []leadership.Election{"gpu", "configured.late", "late"}
	for _, e := range all {
		if token, again, err := tryAcquire(t, restored, e); !errors.Is(err, leadership.LeaseHeld) || again <= 59*time.Minute || again > time.Hour {
			t.Errorf("%s: granted %d, %v, again in %v: want it locked for as long as all others", e, token, err, again)
		}
	}
	c.advance(time.Hour)
	for _, e := range all {
		g, err := s.Acquire(t.Context(), leadership.AcquireRequest{Election: e, CandidateID: "bob"})
		if err != nil || g.Token != above+1 || g.Revision <= above+1 {
			t.Errorf("%s: token %d, revision %d, %v; want token %d", e, g.Token, g.Revision, err, above+1)
		}
	}
	if page, err := s.List(t.Context(), leadership.ListRequest{Prefix: "regent."}); err != nil || len(page.Leases) != 1 {
		t.Errorf("listed are %v, %v; want the relay, and not the floor", page.Leases, err)
	}
	for _, lower := range []Raising{{Above: above - 1, Prefix: "none"}, {Above: above, Prefix: "late"}} {
		if _, err := Raise(t.Context(), restored, lower); !errors.Is(err, leadership.InvalidArgument) {
			t.Errorf("%+v: %v, want %s", lower, err, leadership.InvalidArgument)
		}
	}
	to := c.memory(0)
	if _, err := Move(t.Context(), restored, to, "memory:"); err != nil {
		t.Fatal(err)
	}
	if token, _, err := tryAcquire(t, to, "later"); err != nil || token != above+1 {
		t.Errorf("in the store that all was moved to: granted %d, %v; want %d", token, err, above+1)
	}
}
