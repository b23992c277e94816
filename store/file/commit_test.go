package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/store/file"
)

func TestEveryCommitIsOneWriteAndOneSync(t *testing.T) {
	s, service := open(t, filepath.Join(t.TempDir(), "leases"), file.Clock{})
	large := ask("ann")
	large.Metadata = fmt.Appendf(nil, `{"x":%q}`, strings.Repeat("x", 4000))
	g, err := service.Acquire(t.Context(), large)
	require.NoError(t, err)
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
			_, err := service.Do(t.Context(), leadership.Configure{Election: "other"})
			return err
		},
		"announcement": func() error {
			return s.MarkAnnounced(t.Context(), []leadership.EventID{{Election: "jobs", Revision: 1}})
		},
	} {
		before := s.LogEnd()
		calls = nil
		require.NoError(t, call())
		n := s.LogEnd() - before // which waits for the writer
		if !slices.Equal(calls, []string{"write", "sync"}) || n > sector {
			t.Errorf("%s: got %v of %d bytes, want one write and one sync, and few bytes", name, calls, n)
		}
	}
	calls = nil
	require.NoError(t, s.MarkAnnounced(t.Context(), []leadership.EventID{{Election: "jobs", Revision: 1}, {Election: "none", Revision: 1}}))
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
		require.NoError(t, <-answers)
	}
	if s.LogEnd(); syncs != 1 {
		t.Errorf("%d syncs for %d calls that waited, want one", syncs, callers)
	}
}

func TestAReadTellsNothingThatAPowerCutCouldStillUndo(t *testing.T) {
	u := newUsed(t, 1<<30)
	s, service := u.Store, u.service
	configure := func(delay time.Duration) error {
		c := leadership.Configure{Config: leadership.Config{LockDelay: delay}}
		_, err := service.Do(t.Context(), c.In("mail"))
		return err
	}
	if err := errors.Join(configure(time.Second), u.appendTo(1, "x")); err != nil { // an entry that later commits do not overwrite
		t.Fatal(err)
	}
	syncing, synced := make(chan struct{}), make(chan struct{})
	s.Watch(func(call string) error {
		if call == "sync" {
			close(syncing)
			<-synced
		}
		return nil
	})
	answers := make(chan error, 3)
	release := s.Hold()
	go func() { _, err := service.Acquire(t.Context(), ask("ann")); answers <- err }()
	go func() { answers <- configure(2 * time.Second) }()
	go func() { answers <- u.put(run(1, 1, "y"), run(2, 2, "y")) }()
	queued(t, s, 3)
	release()
	<-syncing
	if l, err := service.Get(t.Context(), "jobs"); !errors.Is(err, leadership.NotFound) {
		t.Errorf("while the commit is being synced: got %+v, %v; want %s", l, err, leadership.NotFound)
	}
	for what, read := range map[string]func() (int, error){
		"events": func() (int, error) { e, err := s.Events(t.Context(), "jobs", 0, 9); return len(e), err },
		"outbox": func() (int, error) { e, err := s.Unannounced(t.Context(), "jobs", 9); return len(e), err },
		"list": func() (int, error) {
			l, err := s.List(t.Context(), "j", "", 9)
			return len(l.Snapshots) + len(l.Untrusted), err
		},
		"a change": func() (int, error) { e, err := s.Get(t.Context(), "mail"); return int(e.Record.Revision - 1), err },
		"journal": func() (int, error) {
			e, err := s.Segments(t.Context(), journal, 0, 9)
			return strings.Count(fmt.Sprint(e), "y"), err
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
	case err := <-answers:
		t.Errorf("it was answered (%v) before it was synced", err)
	default:
	}
	close(synced)
	for range 3 {
		require.NoError(t, <-answers)
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
		begun, goOn, waits := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			<-begun
			go func() { queued(t, s, 1); close(goOn) }()
			waits <- s.MarkAnnounced(t.Context(), []leadership.EventID{{Election: "jobs", Revision: 1}})
		}()
		_, err := s.Update(t.Context(), "other", rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
			close(begun)
			<-goOn
			return rule.Apply(s, leadership.Configure{})
		})
		if err := <-waits; !errors.Is(err, leadership.StoreUnavailable) {
			t.Errorf("a call that waits meanwhile: got %v, want %s", err, leadership.StoreUnavailable)
		}
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
		if err := s.Late(); !errors.Is(err, leadership.StoreUnavailable) {
			t.Errorf("a call that comes when the store is closed: got %v, want %s", err, leadership.StoreUnavailable)
		}
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
			require.NoError(t, replace(t, path))
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
	require.NoError(t, os.Rename(path, path+"-away"))
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
	require.NoError(t, os.MkdirAll(filepath.Join(blocked, "x"), 0o700))
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
	require.NoError(t, os.RemoveAll(blocked))
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

// An attempt to begin the next log that fails is repeated when the log has grown by as much again.
func TestACheckpointThatCannotBeginIsTriedAgainLater(t *testing.T) {
	t.Parallel()
	const least = 3000
	u := newUsed(t, least)
	u.Close()
	var log bytes.Buffer
	u.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	u.open(u.path)
	blocked := filepath.Join(u.path, "log-0000000002.new") // a folder in the place of the file
	require.NoError(t, os.Mkdir(blocked, 0o700))
	at := u.ends(30)
	if n, most := strings.Count(log.String(), "a checkpoint has failed"), at[len(at)-1]/least; n == 0 || n > most {
		t.Errorf("%d attempts have failed in %d bytes, want 1 to %d", n, at[len(at)-1], most)
	}
}

func TestALogThatCannotBeEndedFailsTheStoreAndLosesNothing(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 1<<30)
	u.live(50)
	want := dump(t, u.Store)
	u.Close()
	u.config.Checkpoint = 1
	u.open(u.path)
	u.Watch(func(string) error { return errors.New("the disk is full") }) // a call that commits nothing
	<-u.Broken()
	u.Close()
	u.config.Checkpoint = 1 << 30
	if got := u.reopened(u.path); got != want {
		t.Errorf("opened again: got\n%s\nwant\n%s", got, want)
	}
}

// A checkpoint costs as much as the snapshot, so the log must have as many bytes first.
func TestTheNextCheckpointIsDueWhenTheLogIsAsLongAsTheSnapshot(t *testing.T) {
	t.Parallel()
	u := newUsed(t, 1<<30)
	at := u.ends(30)
	u.Close()
	u.config.Checkpoint = int64(at[len(at)-1])
	u.open(u.path)
	snapshot := func(n uint64) int {
		if err := u.Checkpointed(); err != nil || u.Log() != n {
			t.Fatalf("there are %d logs, want %d; %v", u.Log(), n, err)
		}
		return len(read(t, u.path, fmt.Sprintf("snapshot-%010d", n)))
	}
	due := snapshot(2)
	newest := due
	u.Close()
	u.config.Checkpoint = 1
	u.open(u.path)
	for n := uint64(2); n <= 4; n++ { // a log knows the newest snapshot that was there when it began
		size := 0
		for u.Log() == n {
			size = max(size, u.ends(1)[0])
		}
		if size < due-1000 { // the last commit is not counted
			t.Errorf("log %d had %d bytes at the next checkpoint, want %d", n, size, due)
		}
		due, newest = newest, snapshot(n+1)
	}
}
