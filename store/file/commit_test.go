package file_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"regent/leadership"
	"regent/store/file"
)

func TestEveryCommitIsOneWriteAndOneSync(t *testing.T) {
	s, service := open(t, filepath.Join(t.TempDir(), "leases"), file.Clock{})
	g, err := service.Acquire(t.Context(), ask("ann"))
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	s.Watch(func(call string) error { calls = append(calls, call); return nil })
	lease := leadership.LeaseRequest{Election: "jobs", CandidateID: "ann", Key: g.Key, Token: g.Token}
	for name, call := range map[string]func() error{
		"renew": func() error { _, err := service.Renew(t.Context(), lease); return err },
		"grant": func() error {
			r := ask("bob")
			r.Election = "mail"
			_, err := service.Acquire(t.Context(), r)
			return err
		},
		"configuration": func() error {
			_, err := service.Configure(t.Context(), leadership.ConfigureRequest{Election: "other"})
			return err
		},
		"announcement": func() error {
			return s.MarkAnnounced(t.Context(), []leadership.EventID{{Election: "jobs", Revision: 1}})
		},
	} {
		calls = nil
		if err := call(); err != nil {
			t.Fatal(err)
		}
		if s.LogEnd(); !slices.Equal(calls, []string{"write", "sync"}) { // which waits for the writer
			t.Errorf("%s: got %v, want one write and one sync", name, calls)
		}
	}
	calls = nil
	if err := s.MarkAnnounced(t.Context(), []leadership.EventID{{Election: "jobs", Revision: 1}, {Election: "none", Revision: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Since(t.Context(), g.ReadAt, 10); err != nil {
		t.Fatal(err)
	}
	if len(calls) > 0 {
		t.Errorf("calls that change nothing: %v", calls)
	}
}

// TestCallsThatWaitShareOneCommit counts the syncs of calls that came while the writer was busy.
func TestCallsThatWaitShareOneCommit(t *testing.T) {
	s, service := open(t, filepath.Join(t.TempDir(), "leases"), file.Clock{})
	syncs := 0
	s.Watch(func(call string) error {
		if call == "sync" {
			syncs++
		}
		return nil
	})
	release := s.Hold()
	const callers = 50
	answers := make(chan error, callers)
	for i := range callers {
		go func() {
			r := ask("ann")
			r.Election = leadership.Election("e" + strings.Repeat("x", i))
			_, err := service.Acquire(t.Context(), r)
			answers <- err
		}()
	}
	queued(t, s, callers)
	release()
	for range callers {
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
	}
	if s.LogEnd(); syncs != 1 {
		t.Errorf("%d syncs for %d calls that waited, want one", syncs, callers)
	}
}

func TestAReadTellsNothingThatAPowerCutCouldStillUndo(t *testing.T) {
	s, service := open(t, filepath.Join(t.TempDir(), "leases"), file.Clock{})
	syncing, synced := make(chan struct{}), make(chan struct{})
	s.Watch(func(call string) error {
		if call == "sync" {
			close(syncing)
			<-synced
		}
		return nil
	})
	acquired := make(chan error, 1)
	go func() { _, err := service.Acquire(t.Context(), ask("ann")); acquired <- err }()
	<-syncing
	if l, err := service.Get(t.Context(), "jobs"); !errors.Is(err, leadership.NotFound) {
		t.Errorf("while the commit is being synced: got %+v, %v; want %s", l, err, leadership.NotFound)
	}
	for what, read := range map[string]func() (int, error){
		"events": func() (int, error) { e, err := s.Events(t.Context(), "jobs", 0, 9); return len(e), err },
		"outbox": func() (int, error) { e, err := s.Unannounced(t.Context(), "", 9); return len(e), err },
		"list": func() (int, error) {
			l, err := s.List(t.Context(), "", "", 9)
			return len(l.Snapshots) + len(l.Untrusted), err
		},
		"held": func() (int, error) {
			l, err := s.Held(t.Context(), "", 9)
			return len(l.Snapshots) + len(l.Untrusted), err
		},
	} {
		if n, err := read(); n != 0 || err != nil {
			t.Errorf("%s while the commit is being synced: got %d, %v", what, n, err)
		}
	}
	select {
	case err := <-acquired:
		t.Errorf("it was answered (%v) before it was synced", err)
	default:
	}
	close(synced)
	if err := <-acquired; err != nil {
		t.Fatal(err)
	}
	if l, err := service.Get(t.Context(), "jobs"); err != nil || l.Token != 1 {
		t.Errorf("once it is synced: got %+v, %v", l, err)
	}
}

func TestAfterACommitThatFailedNothingIsReadOrWritten(t *testing.T) {
	for _, fails := range []string{"write", "sync"} {
		path := filepath.Join(t.TempDir(), "leases")
		s, service := open(t, path, file.Clock{})
		if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
			t.Fatal(err)
		}
		full := errors.New("the disk is full")
		s.Watch(func(call string) error {
			if call == fails {
				return full
			}
			return nil
		})
		other := ask("ann")
		other.Election = "other"
		_, err := service.Acquire(t.Context(), other)
		if !errors.Is(err, leadership.OutcomeUnknown) || !errors.Is(err, full) {
			t.Errorf("the %s that fails: got %v, want %s", fails, err, leadership.OutcomeUnknown)
		}
		content := read(t, path, "log-0000000001")
		if _, err = service.Acquire(t.Context(), ask("ann")); !errors.Is(err, leadership.StoreUnavailable) {
			t.Fatalf("a later call: got %v, want %s", err, leadership.StoreUnavailable)
		}
		<-s.Broken()
		if _, err = service.Get(t.Context(), "jobs"); !errors.Is(err, leadership.StoreUnavailable) {
			t.Errorf("a read: got %v, want %s", err, leadership.StoreUnavailable)
		}
		s.Close()
		if !bytes.Equal(content, read(t, path, "log-0000000001")) {
			t.Error("something was written after the failure")
		}
		_, service = open(t, path, file.Clock{})
		if l, err := service.Get(t.Context(), "jobs"); err != nil || l.Token != 1 {
			t.Errorf("opened again: got %+v, %v", l, err)
		}
	}
}

func TestAFolderThatWasRemovedOrReplacedIsServedNoLonger(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, path string) error{
		"removed": func(_ *testing.T, path string) error { return os.RemoveAll(path) },
		"moved":   func(_ *testing.T, path string) error { return os.Rename(path, path+"-away") },
		"a copy": func(t *testing.T, path string) error {
			return errors.Join(os.Rename(path, path+"-away"), os.Rename(copied(t, path+"-away"), path))
		},
		"the log is removed": func(_ *testing.T, path string) error { return os.Remove(filepath.Join(path, "log-0000000001")) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "leases")
			s, service := open(t, path, file.Clock{})
			if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
				t.Fatal(err)
			}
			if err := replace(t, path); err != nil {
				t.Fatal(err)
			}
			if name != "the log is removed" {
				open(t, path, file.Clock{}) // by another program
			}
			if _, err := service.Acquire(t.Context(), ask("ann")); !errors.Is(err, leadership.OutcomeUnknown) {
				t.Fatalf("got %v, want %s", err, leadership.OutcomeUnknown)
			}
			<-s.Broken()
			if _, err := service.Get(t.Context(), "jobs"); !errors.Is(err, leadership.StoreUnavailable) {
				t.Errorf("a read: got %v, want %s", err, leadership.StoreUnavailable)
			}
		})
	}
}

func TestTheCloseOfAMovedFolderDoesNotTouchTheOneInItsPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases")
	s, service := open(t, path, file.Clock{})
	if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+"-away"); err != nil {
		t.Fatal(err)
	}
	other, _ := open(t, path, file.Clock{})
	before := read(t, path, "state")
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "is another file now") {
		t.Errorf("got %v", err)
	}
	if after := read(t, path, "state"); !bytes.Equal(before, after) {
		t.Errorf("its state was %x and is %x", before, after)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

// TestAnEventThatWouldLookUnwrittenIsRefused because it could make a sector of zeros.
func TestAnEventThatWouldLookUnwrittenIsRefused(t *testing.T) {
	s, service := open(t, filepath.Join(t.TempDir(), "leases"), file.Clock{})
	ctx := leadership.WithRequestID(t.Context(), strings.Repeat("\x00", 2000))
	if _, err := service.Acquire(ctx, ask("ann")); err == nil || !strings.Contains(err.Error(), "too many zero bytes") {
		t.Errorf("got %v", err)
	}
	if snap, err := s.Get(t.Context(), "jobs"); err != nil || snap.Record.Revision != 0 {
		t.Errorf("afterwards: got %+v, %v", snap, err)
	}
	if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
		t.Errorf("another call: %v", err)
	}
}

func TestAFailedCheckpointLosesNothingAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 3000)
	u.Close()
	var log bytes.Buffer
	u.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	u.open(u.path)
	blocked := filepath.Join(u.path, "snapshot-0000000002.new") // a folder in the place of the file
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	var failed error
	for failed == nil {
		u.live(1)
		failed = u.Checkpointed()
	}
	if !strings.Contains(failed.Error(), "checkpoint failed") || !strings.Contains(failed.Error(), blocked) {
		t.Errorf("got %v", failed)
	}
	if !strings.Contains(log.String(), "a checkpoint has failed") {
		t.Errorf("the log says %q", log.String())
	}
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	want := dump(t, u.Store)
	if got := u.reopened(copied(t, u.path)); got != want {
		t.Errorf("after the failure: got\n%s\nwant\n%s", got, want)
	}
	for failed != nil {
		u.live(1)
		failed = u.Checkpointed()
	}
	if files, _ := filepath.Glob(u.path + "/*-*"); !slices.Equal(files, []string{filepath.Join(u.path, "log-0000000003"), filepath.Join(u.path, "snapshot-0000000003")}) {
		t.Errorf("after the next: there are %v", files)
	}
	want = dump(t, u.Store)
	if got := u.reopened(copied(t, u.path)); got != want {
		t.Errorf("after the next: got\n%s\nwant\n%s", got, want)
	}
}
