package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/emulators"
	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/file"
	"regent/store/firestore"
	"regent/store/memory"
	"regent/store/spanner"
	"regent/store/storetest"
)

// clock is the real time of a test. Every store shows it with an error of its own.
type clock struct{ since time.Duration }

func (c *clock) advance(d time.Duration) { c.since += d }

// memory returns a store of its own whose clock is that far ahead.
func (c *clock) memory(ahead time.Duration) *memory.Store {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(ahead)
	return memory.New(memory.Config{Now: func() time.Time { return start.Add(c.since) }})
}

// file opens a file.
func (c *clock) file(t *testing.T, path string) *file.Store {
	t.Helper()
	s, err := file.Open(path, file.Config{Clock: file.Clock{BootID: "boot", SinceBoot: func() time.Duration { return c.since }}})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// elections are in every state that there is, after populate.
var elections = []leadership.Election{
	"configured", "deleted", "deleted.held", "held", "held.lock-delay", "lapsed", "locked", "recreated", "regent.relay", "released", "twice",
}

// populate brings the elections of an empty store into their states.
func populate(t *testing.T, s Store, advance func(time.Duration)) {
	t.Helper()
	service := service.New(s)
	acquire := func(e leadership.Election, lease time.Duration) leadership.Grant {
		t.Helper()
		g, err := service.Acquire(t.Context(), leadership.AcquireRequest{Election: e, CandidateID: "ann", Key: &leadership.Key{1}, LeaseDuration: lease})
		require.NoError(t, err)
		return g
	}
	configure := func(e leadership.Election, lock time.Duration) {
		t.Helper()
		command := leadership.Configure{Config: leadership.Config{LeaseDuration: 90 * time.Second, LockDelay: lock}}
		if _, err := service.Do(t.Context(), command.In(e)); err != nil {
			t.Fatal(err)
		}
	}
	end := func(e leadership.Election, g leadership.Grant) {
		t.Helper()
		if _, err := service.Do(t.Context(), leadership.Release{LeaseRequest: leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: g.Key, Token: g.Token}}); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(e leadership.Election) {
		t.Helper()
		if _, err := service.Do(t.Context(), leadership.Delete{Election: e, Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []leadership.Election{"configured", "deleted", "recreated"} {
		configure(e, time.Minute)
	}
	configure("held.lock-delay", time.Hour)
	configure("locked", time.Hour)
	remove("deleted")
	remove("recreated")
	configure("recreated", 0)
	end("released", acquire("released", time.Minute))
	end("twice", acquire("twice", time.Minute))
	end("twice", acquire("twice", time.Minute))
	acquire("lapsed", time.Second)
	acquire("locked", time.Second)
	advance(2 * time.Second)
	if _, err := service.Expire(t.Context(), "locked"); err != nil {
		t.Fatal(err)
	}
	for _, e := range []leadership.Election{"held", "regent.relay", "deleted.held", "held.lock-delay"} {
		acquire(e, time.Hour)
	}
	remove("deleted.held")
	leave(t, s)
}

// contents are all elections of a store, by name.
func contents(t *testing.T, s service.Store) map[leadership.Election]rule.Snapshot {
	t.Helper()
	found, untrusted, err := names(t.Context(), s, "")
	if err != nil || len(untrusted) > 0 {
		t.Fatalf("untrusted %v, %v", untrusted, err)
	}
	all := map[leadership.Election]rule.Snapshot{}
	for _, e := range found {
		if all[e], err = s.Get(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// tryAcquire reports whether bob is granted the election and, if not, when he may try again.
func tryAcquire(t *testing.T, s service.Store, e leadership.Election) (token leadership.Token, again time.Duration, err error) {
	t.Helper()
	g, err := serving(t, s).Acquire(t.Context(), leadership.AcquireRequest{Election: e, CandidateID: "bob"})
	var refused *leadership.Error
	if errors.As(err, &refused) {
		again = refused.RetryAfter
	}
	return g.Token, again, err
}

// serving is the service as a server has it that starts now.
func serving(t *testing.T, s service.Store) *service.Service {
	t.Helper()
	floor, err := Floor(t.Context(), s)
	require.NoError(t, err)
	return service.New(s).WithFloor(floor)
}

// moveAll moves everything, and holds the new store against what the old one had.
func moveAll(t *testing.T, from, to Store) {
	t.Helper()
	before, logs := contents(t, from), logsOf(t, from)
	moved, err := Move(t.Context(), from, to, "memory:")
	if err != nil || len(moved) != len(before) {
		t.Fatalf("moved %v, %v; want %d", moved, err, len(before))
	}
	if got := logsOf(t, to); !reflect.DeepEqual(logs, got) { // cmp takes its time for long ones
		t.Errorf("logs (-old +new):\n%s", cmp.Diff(logs, got))
	}
	after, left := contents(t, to), contents(t, from)
	for e, b := range before {
		a := after[e].Record
		if a.Token != b.Record.Token || a.Revision <= b.Record.Revision || a.Deleted != b.Record.Deleted || a.Policy != b.Record.Policy || a.LeaderID != "" {
			t.Errorf("%s was %+v and is %+v", e, b.Record, a)
		}
		if old := left[e].Record; !old.Deleted || old.Revision >= a.Revision {
			t.Errorf("%s: in the old store %+v is left, in the new one is %+v", e, old, a)
		}
		for _, s := range []service.Store{from, to} {
			events, err := s.Unannounced(t.Context(), e, 1000)
			if err != nil || s == to && len(events) == 0 {
				t.Errorf("%s: to be announced: %v, %v", e, events, err)
			}
		}
	}
}

// open expects that the elections of populate whose last lease is over can be granted, with the
// next tokens.
func open(t *testing.T, s service.Store) {
	t.Helper()
	for e, want := range map[leadership.Election]leadership.Token{"configured": 1, "recreated": 1, "released": 2, "twice": 3, "lapsed": 2} {
		if token, _, err := tryAcquire(t, s, e); err != nil || token != want {
			t.Errorf("%s: granted %d, %v; want %d", e, token, err, want)
		}
	}
	for _, e := range []leadership.Election{"deleted", "deleted.held"} {
		if token, _, err := tryAcquire(t, s, e); !errors.Is(err, leadership.ElectionDeleted) {
			t.Errorf("%s: granted %d, %v; want %s", e, token, err, leadership.ElectionDeleted)
		}
	}
	for e, least := range map[leadership.Election]time.Duration{"held": 50 * time.Minute, "regent.relay": 50 * time.Minute, "locked": 50 * time.Minute, "held.lock-delay": 110 * time.Minute} {
		if token, again, err := tryAcquire(t, s, e); !errors.Is(err, leadership.LeaseHeld) || again < least || again > least+11*time.Minute {
			t.Errorf("%s: granted %d, %v; in %v, want in %v or a little more", e, token, err, again, least)
		}
	}
}

func TestElectionsInEveryStateComeThroughAFileAndBack(t *testing.T) {
	t.Parallel()
	c := &clock{since: time.Hour}
	home, away := c.memory(0), c.file(t, filepath.Join(t.TempDir(), "leases"))
	populate(t, home, c.advance)
	moveAll(t, home, away)
	for _, e := range elections {
		if token, _, err := tryAcquire(t, home, e); !errors.Is(err, leadership.ElectionDeleted) {
			t.Errorf("%s: a forgotten server granted %d, %v", e, token, err)
		}
	}
	moveAll(t, away, home)
	open(t, home)
}

func TestAStoreThatWasMovedIsRefusedUntilItIsMovedBack(t *testing.T) {
	t.Parallel()
	c := &clock{since: time.Hour}
	home, away := c.memory(0), c.file(t, filepath.Join(t.TempDir(), "leases"))
	if _, err := service.New(home).Acquire(t.Context(), leadership.AcquireRequest{Election: leadership.MovedElection, CandidateID: "ann"}); !errors.Is(err, leadership.InvalidArgument) {
		t.Errorf("the mark can be led: %v", err)
	}
	for _, err := range []error{RefuseMoved(t.Context(), home), RefuseMoved(t.Context(), away)} {
		if err != nil {
			t.Error(err)
		}
	}
	for _, where := range []string{"spanner:p", "file:" + strings.Repeat("long/", 100)} {
		if _, err := Move(t.Context(), home, away, where); err != nil {
			t.Fatal(err)
		}
		want := where
		if len(where) > 256 {
			want = "another store"
		}
		if err := RefuseMoved(t.Context(), home); !errors.Is(err, leadership.InvalidArgument) || !strings.Contains(err.Error(), "moved to "+want+",") {
			t.Errorf("moved to %s: %v", where, err)
		}
		if err := RefuseMoved(t.Context(), away); err != nil {
			t.Error(err)
		}
		if _, err := Move(t.Context(), away, home, "memory:"); err != nil {
			t.Fatal(err)
		}
		if err := RefuseMoved(t.Context(), away); !errors.Is(err, leadership.InvalidArgument) || RefuseMoved(t.Context(), home) != nil {
			t.Errorf("moved back: away %v, home %v", err, RefuseMoved(t.Context(), home))
		}
	}
}

func TestElectionsInEveryStateComeThroughEveryStoreAndHome(t *testing.T) {
	t.Parallel()
	c := &clock{since: time.Hour}
	home := c.file(t, filepath.Join(t.TempDir(), "leases"))
	populate(t, home, c.advance)
	inFirestore, err := firestore.Open(t.Context(), firestore.Config{Project: emulators.Name(t), Emulator: emulators.Firestore(t)})
	require.NoError(t, err)
	defer inFirestore.Close()
	inSpanner := onSpanner(t)
	moveAll(t, home, inFirestore)
	moveAll(t, inFirestore, inSpanner)
	moveAll(t, inSpanner, home)
	open(t, home)
}

// onSpanner opens a database of the emulator.
func onSpanner(t *testing.T) *spanner.Store {
	t.Helper()
	database := spanner.Config{Database: "projects/regent-test/instances/" + emulators.Name(t) + "/databases/test", EmulatorHost: emulators.Spanner(t)}
	require.NoError(t, spanner.Migrate(t.Context(), database))
	s, err := spanner.Open(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// brittle is a store whose calls are counted together with another's. The one with the number at
// fails: before anything is done, or after.
func brittle(store Store, calls *int, at int, after bool) Store {
	return &storetest.Fake{Store: store, Around: func(ctx context.Context, _ storetest.Call, next func(context.Context) error) error {
		*calls++
		switch {
		case *calls != at:
			return next(ctx)
		case !after:
			return fmt.Errorf("planted: %w", leadership.StoreUnavailable)
		}
		if err := next(ctx); err != nil {
			return err
		}
		return fmt.Errorf("planted: %w", leadership.OutcomeUnknown)
	}}
}

func TestAMoveThatWasCutAnywhereEndsLikeOneThatWasNot(t *testing.T) {
	t.Parallel()
	scene := func() (from, to *memory.Store) {
		c := &clock{}
		from, to = c.memory(0), c.memory(time.Hour)
		populate(t, from, c.advance)
		return from, to
	}
	from, to := scene()
	moveAll(t, from, to)
	wantFrom, wantTo, wantLogs := contents(t, from), contents(t, to), logsOf(t, to)
	for _, after := range []bool{false, true} {
		for at, cut := 1, true; cut; at++ {
			from, to := scene()
			calls := 0
			_, err := Move(t.Context(), brittle(from, &calls, at, after), brittle(to, &calls, at, after), "memory:")
			if cut = calls >= at; cut != (err != nil) {
				t.Fatalf("call %d: %v", at, err)
			}
			nobodyEarly(t, from, to)
			if len(contents(t, to)) > 0 && RefuseMoved(t.Context(), from) == nil {
				t.Fatalf("cut at call %d, done %v: the old store can be served", at, after)
			}
			for range 2 {
				if _, err := Move(t.Context(), from, to, "memory:"); err != nil {
					t.Fatalf("again after call %d: %v", at, err)
				}
			}
			if diff := cmp.Diff(wantFrom, contents(t, from)) + cmp.Diff(wantTo, contents(t, to)) + cmp.Diff(wantLogs, logsOf(t, to)) + cmp.Diff(wantLogs, logsOf(t, from)); diff != "" {
				t.Fatalf("cut at call %d, done %v (-want +got):\n%s", at, after, diff)
			}
		}
	}
}

// nobodyEarly expects that what has arrived in the new store cannot be led there before the old
// lease is over.
func nobodyEarly(t *testing.T, from, to service.Store) {
	t.Helper()
	old := contents(t, from)
	for e, snap := range contents(t, to) {
		was := old[e]
		left := was.Lease().ExpiresIn
		if was.Record.Deleted {
			left = was.Lease().LockedFor
		}
		ch, err := rule.Acquire(snap, rule.AcquireCommand{CandidateID: "bob", KeyHash: leadership.NewKey().Hash()})
		if err == nil && (left > 0 || ch.Record.Token != was.Record.Token+1) {
			t.Errorf("%s: token %d would be granted, %v before the end of %d", e, ch.Record.Token, left, was.Record.Token)
		}
	}
}

func TestWhatCannotBeTrustedStopsAMoveBeforeItBegins(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(from, to *spoilt){
		"listed as such":     func(from, _ *spoilt) { from.hidden = "held" },
		"without a record":   func(from, _ *spoilt) { from.orphan = "held" },
		"found when read":    func(from, _ *spoilt) { from.corrupt = "held" },
		"in the other store": func(_, to *spoilt) { to.corrupt = "held" },
	} {
		c := &clock{}
		from, to := &spoilt{Store: c.memory(0)}, &spoilt{Store: c.memory(0)}
		populate(t, from.Store, c.advance)
		before := contents(t, from.Store)
		spoil(from, to)
		for _, try := range []func() ([]Passage, error){
			func() ([]Passage, error) { return PlanMove(t.Context(), from, to) },
			func() ([]Passage, error) { return Move(t.Context(), from, to, "memory:") },
		} {
			if moved, err := try(); !errors.Is(err, leadership.RecordCorrupt) || !strings.Contains(err.Error(), `"held"`) {
				t.Errorf("%s: moved %v, %v", name, moved, err)
			}
		}
		if diff := cmp.Diff(before, contents(t, from.Store)); diff != "" || len(contents(t, to.Store)) > 0 {
			t.Errorf("%s: something was written: %s", name, diff)
		}
	}
}

// spoilt is a store with a record that cannot be trusted.
type spoilt struct {
	Store
	hidden, corrupt, orphan leadership.Election
}

func (s *spoilt) Orphans(context.Context) ([]leadership.Election, error) {
	if s.orphan == "" {
		return nil, nil
	}
	return []leadership.Election{s.orphan}, nil
}

func (s *spoilt) List(ctx context.Context, prefix string, after leadership.Election, limit int) (rule.Listing, error) {
	l, err := s.Store.List(ctx, prefix, after, limit)
	for i, snap := range l.Snapshots {
		if snap.Record.Election == s.hidden {
			l.Snapshots = append(l.Snapshots[:i:i], l.Snapshots[i+1:]...)
			l.Untrusted = append(l.Untrusted, s.hidden)
		}
	}
	return l, err
}

func (s *spoilt) Get(ctx context.Context, e leadership.Election) (rule.Snapshot, error) {
	if e == s.corrupt || e == s.hidden {
		return rule.Snapshot{}, rule.Corrupt(e, errors.New("it is spoilt"))
	}
	return s.Store.Get(ctx, e)
}

func TestAStoreThatIsInUseIsNotMovedInto(t *testing.T) {
	t.Parallel()
	c := &clock{}
	from, to := c.memory(0), c.memory(0)
	populate(t, from, c.advance)
	for _, e := range []leadership.Election{"held", "released", "other"} {
		if _, _, err := tryAcquire(t, to, e); err != nil {
			t.Fatal(err)
		}
	}
	before := contents(t, from)
	if moved, err := Move(t.Context(), from, to, "memory:"); !errors.Is(err, leadership.LeaseHeld) || !strings.Contains(err.Error(), "1 more") {
		t.Errorf("moved %v, %v", moved, err)
	}
	if diff := cmp.Diff(before, contents(t, from)); diff != "" || len(contents(t, to)) != 3 {
		t.Errorf("something was written: %s", diff)
	}
}

func TestPlanWritesNothingAndReportsTheMove(t *testing.T) {
	t.Parallel()
	c := &clock{}
	from, to := c.memory(0), c.memory(time.Minute)
	populate(t, from, c.advance)
	before := contents(t, from)
	plan, err := PlanMove(t.Context(), from, to)
	if diff := cmp.Diff(before, contents(t, from)); err != nil || diff != "" || len(contents(t, to)) > 0 {
		t.Fatalf("something was written: %s %v", diff, err)
	}
	moved, err := Move(t.Context(), from, to, "memory:")
	if diff := cmp.Diff(plan, moved); err != nil || diff != "" {
		t.Errorf("%v (-planned +moved):\n%s", err, diff)
	}
	again, err := PlanMove(t.Context(), from, to)
	for _, p := range again {
		if !p.Present {
			t.Errorf("it would be moved again: %+v", p)
		}
	}
	if err != nil || len(again) != len(moved) {
		t.Errorf("%d of %d, %v", len(again), len(moved), err)
	}
}

// contest is one election with leaders who believe in their leases to the end, on a store and then
// on another. It holds grants to what must be true.
type contest struct {
	*testing.T
	*clock
	rand    *rand.Rand
	highest leadership.Token
	until   time.Duration // how long a former leader may still act
	key     leadership.Key
}

// grant lets a candidate try to lead on a store.
func (c *contest) grant(s service.Store) {
	lease := time.Duration(1+c.rand.IntN(40)) * time.Second
	g, err := service.New(s).Acquire(c.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "ann", LeaseDuration: lease})
	if err != nil {
		return
	}
	if g.Token <= c.highest {
		c.Fatalf("token %d was granted after %d", g.Token, c.highest)
	}
	if c.since < c.until {
		c.Fatalf("token %d was granted %v before the end of %d", g.Token, c.until-c.since, c.highest)
	}
	c.highest, c.key, c.until = g.Token, g.Key, c.since+lease
}

// step is what candidates and leaders do on a server of the store, and time.
func (c *contest) step(s service.Store) {
	service := service.New(s)
	lease := leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: c.key, Token: max(c.highest, 1)}
	c.advance(time.Duration(c.rand.IntN(8000)) * time.Millisecond)
	switch c.rand.IntN(8) {
	case 0, 1, 2:
		c.grant(s)
	case 3, 4, 5:
		if l, err := service.Renew(c.Context(), lease); err == nil {
			c.until = c.since + l.ExpiresIn
		}
	case 6:
		if l, err := service.Do(c.Context(), leadership.Release{LeaseRequest: lease}); err == nil && l.Token == c.highest && !l.Deleted && l.LockedFor == 0 {
			c.until = 0
		}
	case 7:
		service.Expire(c.Context(), "jobs")
	}
}

// operate is what an operator does besides.
func (c *contest) operate(s service.Store) {
	service := service.New(s)
	switch c.rand.IntN(10) {
	case 0:
		service.Do(c.Context(), leadership.Delete{Election: "jobs", Force: true})
	case 1, 2:
		config := leadership.Config{LockDelay: time.Duration(max(c.rand.IntN(40)-20, 0)) * time.Second}
		service.Do(c.Context(), leadership.Configure{Election: "jobs", Config: config})
	}
}

// served is a store that is in use between any two calls.
func served(store Store, meanwhile func()) Store {
	return &storetest.Fake{Store: store, Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
		if c.Method == "Get" || c.Method == "Update" {
			meanwhile()
		}
		return next(ctx)
	}}
}

func TestMoveAtAnyTimeLowersNoTokenAndGrantsNoLeaseTooEarly(t *testing.T) {
	t.Parallel()
	var later, grants int
	for seed := range uint64(400) {
		clock := &clock{}
		c := &contest{T: t, clock: clock, rand: rand.New(rand.NewPCG(seed, 5))}
		from, to := clock.memory(0), clock.memory(time.Duration(c.rand.IntN(7200)-3600)*time.Second)
		c.grant(from) // an election that begins after the move is not moved
		for range c.rand.IntN(40) {
			c.step(from)
			c.operate(from)
		}
		c.move(from, to)
		before := c.highest
		for range 20 {
			c.step(from)
			c.step(to)
			c.operate(to)
		}
		if c.highest > before {
			later++
		}
		grants += int(c.highest)
	}
	if later < 200 || grants < 1000 {
		t.Errorf("the walk grants too little to say anything: %d after a move, %d in all", later, grants)
	}
}

// move moves while, at times, a forgotten server goes on.
func (c *contest) move(from, to Store) {
	was := contents(c.T, from)["jobs"].Record
	forgotten := c.rand.IntN(2) == 0
	meanwhile := func() {
		if forgotten && c.rand.IntN(3) == 0 {
			c.step(from)
		}
	}
	for range 20 {
		_, err := Move(c.Context(), served(from, meanwhile), served(to, meanwhile), "memory:")
		if err == nil {
			if is := contents(c.T, to)["jobs"].Record; is.Deleted != was.Deleted || is.Policy != was.Policy {
				c.Fatalf("%+v was moved as %+v", was, is)
			}
			return
		}
		if !errors.Is(err, errChanged) {
			c.Fatal(err)
		}
	}
	c.Fatal("it does not come to an end")
}

func TestALeaseThatIsRenewedDuringAMoveIsWaitedForToItsEnd(t *testing.T) {
	t.Parallel()
	c := &clock{}
	from, to := c.memory(0), c.memory(time.Hour)
	g, err := service.New(from).Acquire(t.Context(), leadership.AcquireRequest{Election: "jobs", CandidateID: "ann"})
	require.NoError(t, err)
	var until time.Duration
	meanwhile := func() {
		c.advance(8 * time.Second)
		l, err := service.New(from).Renew(t.Context(), leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: g.Key, Token: 1})
		if err == nil {
			until = c.since + l.ExpiresIn
		}
	}
	if _, err := Move(t.Context(), served(from, meanwhile), served(to, meanwhile), "memory:"); err != nil {
		t.Fatal(err)
	}
	if token, in, err := tryAcquire(t, to, "jobs"); !errors.Is(err, leadership.LeaseHeld) || c.since+in < until {
		t.Errorf("granted %d, %v; in %v, and ann may believe for %v", token, err, in, until-c.since)
	}
}

func TestAnElectionWithSeatsIsMoved(t *testing.T) {
	c := &clock{}
	from, to := c.memory(0), c.memory(0)
	old, next := service.New(from), service.New(to)
	if _, err := old.Do(t.Context(), leadership.Configure{Election: "gpu", Config: leadership.Config{LeaseDuration: time.Minute, Seats: 2}}); err != nil {
		t.Fatal(err)
	}
	led, err := old.Acquire(t.Context(), leadership.AcquireRequest{Election: "gpu", CandidateID: "ann"})
	require.NoError(t, err)
	if _, err = Move(t.Context(), from, to, "memory:"); err != nil {
		t.Fatal(err)
	}
	c.advance(2 * time.Minute)
	for _, candidate := range []leadership.CandidateID{"bob", "eve"} {
		g, err := next.Acquire(t.Context(), leadership.AcquireRequest{Election: "gpu", CandidateID: candidate})
		if err != nil || g.Election == led.Election && g.Token <= led.Token {
			t.Errorf("in the new store %q gets %+v, %v", candidate, g.Lease, err)
		}
	}
	for _, e := range []leadership.Election{"gpu", "gpu.1", "gpu.2"} {
		if l, err := old.Get(t.Context(), e); !errors.Is(err, leadership.NotFound) {
			t.Errorf("in the old store %q is %+v, %v", e, l, err)
		}
	}
}

func TestTwoSpecsOfOneStoreAreSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "leases")
	(&clock{}).file(t, path).Close()
	const database = "spanner:projects/p/instances/i/databases/d"
	for _, c := range []struct {
		from, to string
		want     string // "": they are two
	}{
		{"firestore:p", "firestore:p/(default)", "one store"},
		{"firestore:p/d", "firestore:p/d", "one store"},
		{"firestore:p", "firestore:p/d", ""},
		{"firestore:p", "firestore:q", ""},
		{database, database, "one store"},
		{database, database + "2", ""},
		{"file:" + path, "file:" + dir + "/./leases", "one store"},
		{"file:" + path, "file:" + dir + "/other.db", ""},
		{"file:a/b", "file:a/c/../b", "one store"},
		{"file:" + path, "firestore:p", ""},
		{"memory:", "firestore:p", "memory: is gone"},
		{"firestore:p", "memory:", "memory: is gone"},
		{"redis:", "firestore:p", "a store is memory:"},
		{"firestore:p", "redis:", "a store is memory:"},
	} {
		err := CheckMove(c.from, c.to)
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, leadership.InvalidArgument) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s to %s: %v, want %q", c.from, c.to, err, c.want)
		}
	}
}

func TestAnElectionThatNeedsANewerProgramIsNeitherMovedNorRaised(t *testing.T) {
	t.Parallel()
	ahead := memory.New(memory.Config{Codec: rule.Codec{Next: true}})
	for _, e := range []leadership.Election{"new", "plain"} {
		_, err := ahead.Update(t.Context(), e, rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
			ch, err := rule.Apply(s, leadership.Configure{})
			if e == "new" {
				ch.Record.Policy.Description = "x"
			}
			return ch, err
		})
		require.NoError(t, err)
	}
	from, to := ahead.OpenAs(rule.Codec{}), memory.New(memory.Config{})
	before := contents(t, ahead)
	if _, err := Move(t.Context(), from, to, "memory:"); !errors.Is(err, leadership.RecordTooNew) || !strings.Contains(err.Error(), `"new"`) {
		t.Errorf("move: %v", err)
	}
	if _, err := Raise(t.Context(), from, Raising{Above: 100}); !errors.Is(err, leadership.RecordTooNew) {
		t.Errorf("raise: %v", err)
	}
	after := contents(t, ahead)
	if len(contents(t, to)) != 0 || after["new"].Record != before["new"].Record || after["plain"].Record != before["plain"].Record {
		t.Errorf("something was written: %+v", after)
	}
}
