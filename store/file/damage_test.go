package file_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"regent/leadership"
	"regent/store/file"
)

const pageSize = 4096

// used makes a file with a history in it, and returns its bytes.
func used(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "regent.db")
	s, service := open(t, path, file.Clock{})
	for i := range 40 {
		r := ask("ann")
		r.Election = electionOf(i)
		if _, err := service.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func electionOf(i int) leadership.Election {
	return leadership.Election("e" + strings.Repeat("x", i+1))
}

func TestADamagedFileIsRefusedInOneLineAndNotByACrash(t *testing.T) {
	whole := used(t)
	if s, err := file.Open(written(t, whole), file.Config{}); err != nil {
		t.Fatalf("the whole file: %v", err)
	} else {
		s.Close()
	}
	for name, damage := range map[string]func([]byte) []byte{
		"a flipped bit in the first meta page":  func(b []byte) []byte { b[36] ^= 1; return b },
		"a flipped bit in the second meta page": func(b []byte) []byte { b[pageSize+36] ^= 1; return b },
		"no meta page at all":                   func(b []byte) []byte { clear(b[:2*pageSize]); return b },
		"cut short":                             func(b []byte) []byte { return b[:5*pageSize] },
		"cut within the meta pages":             func(b []byte) []byte { return b[:pageSize+20] },
		"zeroes from the third page on":         func(b []byte) []byte { clear(b[3*pageSize:]); return b },
		"a page with another page's number":     func(b []byte) []byte { copy(b[rootOf(b)*pageSize:], b[:pageSize]); return b },
		"branches that lead to themselves":      func(b []byte) []byte { return pages(b, 0x01, leadToItself) },
		"keys out of order":                     func(b []byte) []byte { return pages(b, 0x02, sameKeyTwice) },
		"elements that lie elsewhere":           func(b []byte) []byte { return pages(b, 0x02, farAway) },
	} {
		t.Run(name, func(t *testing.T) {
			path := written(t, damage(slices.Clone(whole)))
			s, err := file.Open(path, file.Config{})
			if err == nil {
				defer s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 600 {
				t.Errorf("got %v", err)
			}
		})
	}
}

// rootOf is the number of a page that is in use: the newer meta page's root.
func rootOf(content []byte) uint64 {
	number := func(page, at int) uint64 { return binary.NativeEndian.Uint64(content[page*pageSize+at:]) }
	newer := 0
	if number(1, 64) > number(0, 64) { // the transaction
		newer = 1
	}
	return number(newer, 32)
}

// pages changes all pages of a kind.
func pages(content []byte, kind uint16, change func(id uint64, page []byte)) []byte {
	for at := 2 * pageSize; at+pageSize <= len(content); at += pageSize {
		page := content[at : at+pageSize]
		if binary.NativeEndian.Uint16(page[8:]) == kind && binary.NativeEndian.Uint16(page[10:]) >= 2 {
			change(uint64(at/pageSize), page)
		}
	}
	return content
}

func leadToItself(id uint64, page []byte) { binary.NativeEndian.PutUint64(page[16+8:], id) }

// sameKeyTwice lets the second element of a leaf have the key of the first.
func sameKeyTwice(_ uint64, page []byte) {
	binary.NativeEndian.PutUint32(page[32+4:], binary.NativeEndian.Uint32(page[16+4:])-16)
	binary.NativeEndian.PutUint32(page[32+8:], binary.NativeEndian.Uint32(page[16+8:]))
}

func farAway(_ uint64, page []byte) { binary.NativeEndian.PutUint32(page[16+4:], 1<<31) }

func written(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "regent.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEveryCommitIsSynced(t *testing.T) {
	if s, _ := open(t, filepath.Join(t.TempDir(), "regent.db"), file.Clock{}); !s.Synced() {
		t.Error("commits are not synced")
	}
}

func TestAReadTellsNothingThatAPowerCutCouldStillUndo(t *testing.T) {
	s, service := open(t, filepath.Join(t.TempDir(), "regent.db"), file.Clock{})
	if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
		t.Fatal(err)
	}
	synced := s.Unsync()
	impatient, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if l, err := service.Get(impatient, "jobs"); !errors.Is(err, leadership.StoreUnavailable) {
		t.Errorf("while the commit is being synced: got %+v, %v; want %s", l, err, leadership.StoreUnavailable)
	}
	read := make(chan error, 1)
	go func() { _, err := service.Get(t.Context(), "jobs"); read <- err }()
	synced()
	if err := <-read; err != nil {
		t.Errorf("once it is synced: %v", err)
	}
}

// behind reads jobs behind all that the writer has taken or has waiting.
func behind(t *testing.T, s *file.Store) leadership.Record {
	t.Helper()
	snap, err := s.Update(t.Context(), "jobs", func(leadership.Snapshot) (leadership.Change, error) { return leadership.Change{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return snap.Record
}

// queued waits until so many calls wait for the writer.
func queued(t *testing.T, s *file.Store, calls int) {
	for s.Queued() < calls && t.Context().Err() == nil {
		runtime.Gosched()
	}
}

func TestAChangeThatWasBegunWhenItsCallerGaveUpIsUnknownAndIsDone(t *testing.T) {
	s, _ := open(t, filepath.Join(t.TempDir(), "regent.db"), file.Clock{})
	ctx, giveUp := context.WithCancel(t.Context())
	returned := make(chan struct{})
	_, err := s.Update(ctx, "jobs", func(snap leadership.Snapshot) (leadership.Change, error) {
		giveUp()
		<-returned
		return leadership.Acquire(snap, leadership.AcquireCommand{CandidateID: "ann", KeyHash: leadership.Key{1}.Hash()})
	})
	close(returned)
	if !errors.Is(err, leadership.OutcomeUnknown) || errors.Is(err, leadership.StoreUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %s because of %v", err, leadership.OutcomeUnknown, context.Canceled)
	}
	if r := behind(t, s); r.Token != 1 {
		t.Errorf("token %d; want that of the change, 1", r.Token)
	}
}

func TestCancelledRenewalIsUnknownAndStaysSo(t *testing.T) {
	s, service := open(t, filepath.Join(t.TempDir(), "regent.db"), file.Clock{})
	g, err := service.Acquire(t.Context(), ask("ann"))
	if err != nil {
		t.Fatal(err)
	}
	lease := []leadership.Renewal{{Election: "jobs", CandidateID: "ann", KeyHash: g.Key.Hash(), Token: g.Token}}
	first := s.Hold()
	second := make(chan func(), 1)
	go func() { second <- s.Hold() }()
	queued(t, s, 1)
	ctx, giveUp := context.WithCancel(t.Context())
	answers := make(chan []leadership.Renewed, 1)
	go func() { answers <- s.Renew(ctx, lease) }()
	queued(t, s, 2)
	first()
	release := <-second // both are taken now, and the renewal comes behind
	giveUp()
	got := <-answers
	lease[0].Token = 99 // the caller's again
	release()
	if r := behind(t, s); !r.HeartbeatAt.After(g.LastHeartbeat) {
		t.Errorf("the last heartbeat is of %v, that of the grant was of %v: the renewal that had begun was not done", r.HeartbeatAt, g.LastHeartbeat)
	}
	if err := got[0].Err; !errors.Is(err, leadership.OutcomeUnknown) || errors.Is(err, leadership.StoreUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %s because of %v", err, leadership.OutcomeUnknown, context.Canceled)
	}
}

func TestRenewalCancelledBeforeItBeginsIsNotDone(t *testing.T) {
	s, service := open(t, filepath.Join(t.TempDir(), "regent.db"), file.Clock{})
	g, err := service.Acquire(t.Context(), ask("ann"))
	if err != nil {
		t.Fatal(err)
	}
	release := s.Hold()
	ctx, giveUp := context.WithCancel(t.Context())
	answers := make(chan []leadership.Renewed, 1)
	go func() {
		answers <- s.Renew(ctx, []leadership.Renewal{{Election: "jobs", CandidateID: "ann", KeyHash: g.Key.Hash(), Token: g.Token}})
	}()
	queued(t, s, 1)
	giveUp()
	got := <-answers
	release()
	if r := behind(t, s); !r.HeartbeatAt.Equal(g.LastHeartbeat) {
		t.Errorf("the last heartbeat is of %v, that of the grant was of %v", r.HeartbeatAt, g.LastHeartbeat)
	}
	if err := got[0].Err; !errors.Is(err, leadership.StoreUnavailable) || errors.Is(err, leadership.OutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %s because of %v", err, leadership.StoreUnavailable, context.Canceled)
	}
}

func TestWhatEndedBeforeABootIsNotRevivedByIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "regent.db")
	uptime := time.Hour
	clock := func(boot string) file.Clock {
		return file.Clock{BootID: boot, SinceBoot: func() time.Duration { return uptime }}
	}
	s, service := open(t, path, clock("boot-1"))
	if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
		t.Fatal(err)
	}
	uptime += time.Minute // ann's lease is over, and its end is not recorded
	other := ask("ann")
	other.Election = "other"
	if _, err := service.Acquire(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	s.Close()
	uptime = time.Second
	_, service = open(t, path, clock("boot-2"))
	if _, err := service.CheckToken(t.Context(), leadership.TokenCheck{Election: "jobs", Token: 1}); !errors.Is(err, leadership.TokenStale) {
		t.Errorf("the token of the lease that was over: got %v, want %s", err, leadership.TokenStale)
	}
	if l, err := service.Get(t.Context(), "other"); err != nil || l.ExpiresIn != leadership.DefaultLeaseDuration {
		t.Errorf("the lease that was not: %v left, %v; want all of it", l.ExpiresIn, err)
	}
}

func TestLockAfterAnUnrecordedEndStartsAnewAfterAnotherBoot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "regent.db")
	uptime := time.Hour
	clock := func(boot string) file.Clock {
		return file.Clock{BootID: boot, SinceBoot: func() time.Duration { return uptime }}
	}
	s, service := open(t, path, clock("boot-1"))
	config := leadership.ConfigureCommand{Config: leadership.Config{LeaseDuration: 10 * time.Second, LockDelay: time.Hour}}
	if _, err := service.Configure(t.Context(), leadership.ConfigureRequest{Election: "jobs", ConfigureCommand: config}); err != nil {
		t.Fatal(err)
	}
	if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
		t.Fatal(err)
	}
	uptime += 30 * time.Minute
	other := ask("ann")
	other.Election = "other"
	if _, err := service.Acquire(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	s.Close()
	uptime = time.Second
	_, service = open(t, path, clock("boot-2"))
	if l, err := service.Get(t.Context(), "jobs"); err != nil || l.State != leadership.Vacant || l.LockedFor != time.Hour {
		t.Errorf("%s, locked for %v, %v; want vacant and locked for an hour", l.State, l.LockedFor, err)
	}
}

// A clock that went back within one boot starts every lease anew, and time goes on from there. A
// store that believes the clock shows no earlier time either: its time stands still until the clock
// has caught up, and so does the lease.
func TestAClockThatWentBackWithinABootCountsAsAnotherBoot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "regent.db")
	uptime := time.Hour
	clock := file.Clock{BootID: "boot-1", SinceBoot: func() time.Duration { return uptime }}
	s, service := open(t, path, clock)
	if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
		t.Fatal(err)
	}
	s.Close()
	uptime -= 30 * time.Minute // the machine's memory was restored from a snapshot
	_, service = open(t, path, clock)
	for _, passed := range []time.Duration{0, 10 * time.Second, 10 * time.Second} {
		uptime += passed
		want := leadership.DefaultLeaseDuration - (uptime - 30*time.Minute)
		if l, err := service.Get(t.Context(), "jobs"); err != nil || l.ExpiresIn != want {
			t.Errorf("%v after the restart: %v left, %v; want %v", uptime-30*time.Minute, l.ExpiresIn, err, want)
		}
	}
}

func TestAFileThatWasRemovedIsServedNoLonger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "regent.db")
	s, service := open(t, path, file.Clock{})
	if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	open(t, path, file.Clock{}) // by another program
	if _, err := service.Acquire(t.Context(), ask("ann")); !errors.Is(err, leadership.OutcomeUnknown) {
		t.Fatalf("got %v, want %s", err, leadership.OutcomeUnknown)
	}
	<-s.Broken()
	if _, err := service.Get(t.Context(), "jobs"); !errors.Is(err, leadership.StoreUnavailable) {
		t.Errorf("a read: got %v, want %s", err, leadership.StoreUnavailable)
	}
}

func TestAnEventThatCannotBeReadHoldsUpItsOwnElectionOnly(t *testing.T) {
	s, service := open(t, filepath.Join(t.TempDir(), "regent.db"), file.Clock{})
	for range 2 { // acquired, released, acquired, released
		g, err := service.Acquire(t.Context(), ask("ann"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := service.Release(t.Context(), leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: g.Key, Token: g.Token}); err != nil {
			t.Fatal(err)
		}
	}
	other := ask("ann")
	other.Election = "other"
	if _, err := service.Acquire(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if err := s.SpoilEvent(leadership.EventID{Election: "jobs", Revision: 2}); err != nil {
		t.Fatal(err)
	}
	events, err := s.Unannounced(t.Context(), "", 10)
	if err != nil || len(events) != 2 || events[0].Election != "jobs" || events[0].Revision != 1 || events[1].Election != "other" {
		t.Errorf("got %v, %v; want the first of jobs and that of other", events, err)
	}
	if err := s.MarkAnnounced(t.Context(), []leadership.EventID{events[0].ID(), events[1].ID()}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Unannounced(t.Context(), "", 10); !errors.Is(err, leadership.RecordCorrupt) || !strings.Contains(err.Error(), `"jobs"`) {
		t.Errorf("when nothing else waits: got %v, want %s for jobs", err, leadership.RecordCorrupt)
	}
}
