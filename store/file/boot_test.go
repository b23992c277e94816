package file_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/file"
)

// machine has a store in a folder, which it opens at each boot.
type machine struct {
	*service.Service
	t      *testing.T
	path   string
	uptime time.Duration
	store  *file.Store
}

// newMachine returns a machine that has run for the uptime.
func newMachine(t *testing.T, id string, uptime time.Duration) *machine {
	m := &machine{t: t, path: filepath.Join(t.TempDir(), "leases"), uptime: uptime}
	m.open(id)
	return m
}

func (m *machine) open(id string) {
	m.t.Helper()
	m.store, m.Service = open(m.t, m.path, file.Clock{BootID: id, SinceBoot: func() time.Duration { return m.uptime }})
}

// restart closes the store and opens it with the given boot id and uptime.
func (m *machine) restart(id string, uptime time.Duration) {
	m.t.Helper()
	require.NoError(m.t, m.store.Close())
	m.uptime = uptime
	m.open(id)
}

// lead has ann lead an election.
func (m *machine) lead(e leadership.Election) {
	m.t.Helper()
	request := ask("ann")
	request.Election = e
	if _, err := m.Acquire(m.t.Context(), request); err != nil {
		m.t.Fatal(err)
	}
}

// configure configures the election jobs.
func (m *machine) configure(c leadership.Config) {
	m.t.Helper()
	request := leadership.Configure{Election: "jobs", Config: c}
	if _, err := m.Do(m.t.Context(), request); err != nil {
		m.t.Fatal(err)
	}
}

func TestAfterAnotherBootNoLeaseIsGrantedBeforeAFullLeaseHasPassed(t *testing.T) {
	for name, c := range map[string]struct {
		boots [2]string
		then  time.Duration // the second one's uptime
	}{
		"another boot id":                       {[2]string{"boot-1", "boot-2"}, time.Second},
		"a machine that has run for far longer": {[2]string{"boot-1", "boot-2"}, 10_000 * time.Hour}, // the disk was moved
		"no boot id at all":                     {[2]string{"", ""}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, c.boots[0], 100*time.Hour)
			m.lead("jobs")
			m.uptime += 29 * time.Second
			before, err := m.Get(t.Context(), "jobs")
			require.NoError(t, err)
			m.restart(c.boots[1], c.then) // the machine was off for an unknown time
			after, err := m.Get(t.Context(), "jobs")
			require.NoError(t, err)
			if after.ExpiresIn != leadership.DefaultLeaseDuration || after.Token != 1 || after.ReadAt.Before(before.ReadAt.Add(-30*time.Second)) {
				t.Errorf("after the boot: %+v, want a full lease of token 1", after)
			}
			m.uptime += leadership.DefaultLeaseDuration - time.Nanosecond
			if _, err := m.Acquire(t.Context(), ask("bob")); !errors.Is(err, leadership.LeaseHeld) {
				t.Errorf("just before the end: %v, want %s", err, leadership.LeaseHeld)
			}
			m.uptime += time.Nanosecond
			if g, err := m.Acquire(t.Context(), ask("bob")); err != nil || g.Token != 2 {
				t.Errorf("at the end: token %d, %v; want 2", g.Token, err)
			}
		})
	}
}

func TestAfterARestartInTheSameBootALeaseGoesOn(t *testing.T) {
	m := newMachine(t, "boot-1", time.Hour)
	m.lead("jobs")
	m.restart("boot-1", m.uptime+20*time.Second)
	if l, err := m.Get(t.Context(), "jobs"); err != nil || l.ExpiresIn != 10*time.Second {
		t.Errorf("got %v left, %v; want 10s", l.ExpiresIn, err)
	}
}

func TestALockDelayStartsAnewAfterAnotherBoot(t *testing.T) {
	m := newMachine(t, "boot-1", time.Hour)
	m.configure(leadership.Config{LockDelay: time.Minute})
	m.lead("jobs")
	m.uptime += 80 * time.Second // 50 s into the lock
	if _, err := m.Expire(t.Context(), "jobs"); err != nil {
		t.Fatal(err)
	}
	m.restart("boot-2", time.Second)
	if l, err := m.Get(t.Context(), "jobs"); err != nil || l.LockedFor != time.Minute {
		t.Errorf("locked for %v, %v; want a full minute", l.LockedFor, err)
	}
}

func TestALeaseThatEndedBeforeABootIsNotRevivedByIt(t *testing.T) {
	m := newMachine(t, "boot-1", time.Hour)
	m.lead("jobs")
	m.uptime += time.Minute // ann's lease is over, and its end is not recorded
	m.lead("other")
	m.restart("boot-2", time.Second)
	if _, err := m.CheckToken(t.Context(), leadership.TokenCheck{Election: "jobs", Token: 1}); !errors.Is(err, leadership.TokenStale) {
		t.Errorf("the token of the lease that was over: got %v, want %s", err, leadership.TokenStale)
	}
	if l, err := m.Get(t.Context(), "other"); err != nil || l.ExpiresIn != leadership.DefaultLeaseDuration {
		t.Errorf("the lease that was not: %v left, %v; want all of it", l.ExpiresIn, err)
	}
}

// A clock that went back within one boot starts every lease anew, and time goes on from there. A
// store that believes the clock shows no earlier time either: its time stands still until the clock
// has caught up, and so does the lease.
func TestAClockThatWentBackWithinABootCountsAsAnotherBoot(t *testing.T) {
	m := newMachine(t, "boot-1", time.Hour)
	m.lead("jobs")
	m.restart("boot-1", 30*time.Minute) // the machine's memory was restored from a snapshot
	for _, passed := range []time.Duration{0, 10 * time.Second, 10 * time.Second} {
		m.uptime += passed
		want := leadership.DefaultLeaseDuration - (m.uptime - 30*time.Minute)
		if l, err := m.Get(t.Context(), "jobs"); err != nil || l.ExpiresIn != want {
			t.Errorf("%v after the restart: %v left, %v; want %v", m.uptime-30*time.Minute, l.ExpiresIn, err, want)
		}
	}
}

// TestAfterAnotherBootALatestEndStaysAsFarAway also for a record that only a newer program may
// decide on: that program finds the boot as this one has left it.
func TestAfterAnotherBootALatestEndStaysAsFarAway(t *testing.T) {
	t.Parallel()
	path, uptime := t.TempDir()+"/leases", time.Hour
	newer := rule.Codec{Next: true}
	open := func(boot string, codec rule.Codec) *file.Store {
		s, err := file.Open(path, file.Config{Clock: file.Clock{BootID: boot, SinceBoot: func() time.Duration { return uptime }}, Codec: codec})
		require.NoError(t, err)
		return s
	}
	s := open("first", newer)
	config := leadership.Configure{Config: leadership.Config{LockDelay: time.Hour}}
	if _, err := service.New(s).Do(t.Context(), config.In("locked")); err != nil {
		t.Fatal(err)
	}
	for _, e := range []leadership.Election{"locked", "known", "new"} {
		snap, err := s.Update(t.Context(), e, rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
			ch, err := rule.Acquire(s, rule.AcquireCommand{CandidateID: "ann", KeyHash: leadership.KeyHash{1}, LeaseDuration: time.Minute})
			if e != "locked" {
				ch.Record.EndsBy, ch.Record.EndsBecause = s.Now.Add(20*time.Second).In(time.FixedZone("", 3600)), leadership.EndsDrained
			}
			if e != "known" {
				ch.Record.Policy.Description = "x"
			}
			return ch, err
		})
		require.NoError(t, err)
		if zone := snap.Record.EndsBy.Location(); zone != time.UTC { // as it is read again
			t.Errorf("%s: its end is kept in the time of %q", e, zone)
		}
		if e == "locked" {
			uptime += 2 * time.Minute // its lease is over, and its lock is not
		}
	}
	s.Close()
	open("second", rule.Codec{}).Close()
	s = open("second", newer)
	defer s.Close()
	for _, e := range []leadership.Election{"known", "new"} {
		snap, err := s.Get(t.Context(), e)
		if l := snap.Lease(); err != nil || l.ExpiresIn != 20*time.Second || l.EndsIn != 20*time.Second {
			t.Errorf("%s: %v left, %v until its latest end, %v; want 20s", e, l.ExpiresIn, l.EndsIn, err)
		}
	}
	if l, err := service.New(s).Get(t.Context(), "locked"); err != nil || l.LockedFor != time.Hour {
		t.Errorf("after the lease of a record that was too new: locked for %v, %v; want 1h", l.LockedFor, err)
	}
}

// What ends a term while the machine runs ends it as much later as the machine was off, so that a
// leader has no less time for an approval or for progress. Dates that people gave stay dates.
func TestAfterAnotherBootWhatLimitsATermStaysAsFarAwayAndOrdersKeepTheirDates(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "boot-1", time.Hour)
	m.configure(leadership.Config{LeaseDuration: time.Minute, Term: leadership.TermPolicy{
		MaxTerm: 3 * time.Hour, Approval: leadership.ApprovalPolicy{Every: 2 * time.Hour}, StuckAfter: 3 * time.Minute, Cooldown: time.Hour,
	}})
	m.lead("jobs")
	ban := leadership.Order{Kind: leadership.OrderBan, CandidateID: "bob", For: 24 * time.Hour, Reason: "it is being repaired", Actor: "ops"}
	if _, err := m.Do(t.Context(), ban.In("jobs")); err != nil {
		t.Fatal(err)
	}
	before, err := m.store.Update(t.Context(), "jobs", rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) { // so the last commit is of now
		ch := rule.Change{Record: s.Record, Quiet: true}
		ch.Record.Standing.Unknown = `{"seen":1}`
		return ch, nil
	})
	require.NoError(t, err)
	m.restart("boot-2", m.uptime) // the wall clock has gone on meanwhile, the other has not
	after, err := m.store.Get(t.Context(), "jobs")
	require.NoError(t, err)
	was, is := before.Record, after.Record
	moved := is.EndsBy.Sub(was.EndsBy)
	if left := is.EndsBy.Sub(after.Now); left != was.EndsBy.Sub(before.Now) {
		t.Errorf("its end is %v away, and was %v", left, was.EndsBy.Sub(before.Now))
	}
	if want := was.Standing.TermMoved(moved); moved <= 0 || is.Standing != want || is.Standing.Overrides != was.Standing.Overrides {
		t.Errorf("by %v: got %+v\nwant %+v", moved, is.Standing, want)
	}
	m.restart("boot-2", m.uptime)
	if again, err := m.store.Get(t.Context(), "jobs"); err != nil || again.Record != is {
		t.Errorf("opened once more: %+v, %v\nwant %+v", again.Record, err, is)
	}
	m.uptime += 30 * time.Second
	l, err := m.Renew(t.Context(), leadership.LeaseRequest{
		Election: "jobs", CandidateID: "ann", Key: *ask("ann").Key, Token: 1, Report: []byte(`{"progress":1}`),
	})
	if err != nil || l.EndsBecause != leadership.EndsStuck || l.EndsIn.Truncate(time.Millisecond) != 3*time.Minute {
		t.Errorf("with new progress it ends in %v (%s), %v; want 3m", l.EndsIn, l.EndsBecause, err)
	}
}

// A lease that ran out by itself before the machine went down did so for no limit of its term: a
// limit that was still ahead then is still ahead of the end that the lease has now.
func TestAfterAnotherBootALeaseThatRanOutByItselfIsNotDeposed(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "boot-1", time.Hour)
	m.configure(leadership.Config{
		LeaseDuration: time.Minute, LockDelay: time.Hour, Term: leadership.TermPolicy{StuckAfter: 2 * time.Minute, Cooldown: time.Hour},
	})
	m.lead("jobs")
	m.uptime += 3 * time.Minute
	m.lead("other")
	m.restart("boot-2", time.Second)
	if l, err := m.Get(t.Context(), "jobs"); err != nil || l.LockedFor != time.Hour {
		t.Errorf("locked for %v, %v; want a full hour", l.LockedFor, err)
	}
	if _, err := m.Expire(t.Context(), "jobs"); err != nil {
		t.Fatal(err)
	}
	events, err := m.Events(t.Context(), leadership.EventsRequest{Election: "jobs"})
	if err != nil || events[len(events)-1].Type != leadership.EventExpired {
		t.Errorf("its end is told as %+v, %v; want %s", events[len(events)-1], err, leadership.EventExpired)
	}
}

// A term's ends that need more room once they are moved may have none. They are then sooner.
func TestAfterAnotherBootAStandingThatWouldBecomeTooLargeStaysAsItWas(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "boot-1", time.Hour)
	before, err := m.store.Update(t.Context(), "jobs", rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
		ch, err := rule.Acquire(s, rule.AcquireCommand{CandidateID: "ann", KeyHash: leadership.KeyHash{1}})
		r, ends := &ch.Record, &ch.Record.Standing.Ends
		ends.Ordered, ends.Because = s.Now.Add(time.Hour).Truncate(time.Second), leadership.EndsDrained
		r.EndsBy, r.EndsBecause, r.Standing.Unknown = ends.Ordered, ends.Because, `{"x":""}`
		carried, encoded := rule.Codec{}.Encode(r)
		r.Standing.Unknown = `{"x":"` + strings.Repeat("x", rule.MaxCarriedBytes-len(carried.Policy+carried.Standing)) + `"}`
		return ch, errors.Join(err, encoded)
	})
	require.NoError(t, err)
	m.restart("boot-2", time.Second)
	after, err := m.store.Get(t.Context(), "jobs")
	if err != nil || after.Record.Standing != before.Record.Standing || !after.Record.HeartbeatAt.After(before.Record.HeartbeatAt) {
		t.Errorf("got %+v, %v", after.Record.Standing.Ends, err)
	}
}

// All that has a date ends by a wall clock that is ahead.
func TestABootLongAfterTheLastCommitIsToldOfInTheLog(t *testing.T) {
	const day = 24 * time.Hour
	for off, long := range map[time.Duration]bool{30 * day: false, 31 * day: true} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "leases")
			for _, open := range []struct {
				boot string
				told bool
			}{{"boot-1", false}, {"boot-2", long}, {"boot-2", false}} {
				var log bytes.Buffer
				clock := file.Clock{BootID: open.boot, SinceBoot: func() time.Duration { return time.Hour }}
				s, err := file.Open(path, file.Config{Clock: clock, Log: slog.New(slog.NewTextHandler(&log, nil))})
				require.NoError(t, err)
				s.Close()
				if told := strings.Contains(log.String(), "last=2000-01-01T00:00:00.000Z now=2000-02-01T00:00:00.000Z"); told != open.told {
					t.Errorf("off for %v, %s: the log says %q", off, open.boot, log.String())
				}
				time.Sleep(off)
			}
		})
	}
}

// A time namespace, as containers may have, shifts the clock.
func TestTheFolderNamesTheMachinesBootAndTheNamespaceOfItsClock(t *testing.T) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Skip(err)
	}
	offsets, _ := os.ReadFile("/proc/self/timens_offsets")
	path := filepath.Join(t.TempDir(), "leases")
	open(t, path, file.Clock{})
	boot := strings.Join(strings.Fields(string(id)+" "+string(offsets)), " ")
	if !bytes.Contains(read(t, path, "log-0000000001"), []byte(boot)) {
		t.Errorf("the boot %q is not in the log", boot)
	}
}
