package file_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/file"
	"regent/store/storetest"
)

func TestTheStoreKeepsItsContract(t *testing.T) { storetest.RunStore(t, backing) }

func TestTheJournalKeepsItsContract(t *testing.T) { storetest.RunJournal(t, backing) }

func TestTheProtocolHoldsOnFile(t *testing.T) { storetest.RunProtocol(t, backing) }

// shared is a folder that several handles share, for only one of them can have it open.
type shared struct {
	path  string
	start time.Time
	ahead atomic.Int64 // nanoseconds that the clock was moved by

	mu    sync.Mutex
	store *file.Store // nil while no handle is open
	users int
}

// handle is one user of the folder. The last to close it closes the folder.
type handle struct {
	*file.Store
	file   *shared
	closed sync.Once
}

func backing(t testing.TB) storetest.Backing {
	f := &shared{path: filepath.Join(t.TempDir(), "leases"), start: time.Now()}
	return storetest.Backing{
		Open:      f.open,
		OpenAs:    f.openAs,
		Exclusive: true,
		Advance:   func(_ testing.TB, d time.Duration) { f.ahead.Add(int64(d)) },
		Damage: func(_ testing.TB, e leadership.Election, d storetest.Damage) {
			f.store.Spoil(e, damages[d])
		},
	}
}

// clock runs in real time, and as much ahead as it was moved. All of the test is one boot.
func (f *shared) clock() file.Clock {
	return file.Clock{BootID: "boot", SinceBoot: func() time.Duration { return time.Since(f.start) + time.Duration(f.ahead.Load()) }}
}

func (f *shared) open(t testing.TB) service.Store { return f.openAs(t, rule.Codec{}) }

func (f *shared) openAs(t testing.TB, codec rule.Codec) service.Store {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.store == nil {
		s, err := file.Open(f.path, file.Config{Clock: f.clock(), History: storetest.History, Codec: codec})
		require.NoError(t, err)
		f.store = s
	}
	f.users++
	h := &handle{Store: f.store, file: f}
	t.Cleanup(func() { h.Close() })
	return h
}

func (h *handle) Close() (err error) {
	h.closed.Do(func() {
		h.file.mu.Lock()
		defer h.file.mu.Unlock()
		if h.file.users--; h.file.users == 0 {
			h.file.store = nil
			err = h.Store.Close()
		}
	})
	return err
}

// damages are the nearest equivalents for a store whose records are in memory. A folder is read
// whole or not at all.
var damages = map[storetest.Damage]func(*rule.Record){
	storetest.MissingField:  func(r *rule.Record) { r.KeyHash = leadership.KeyHash{} },
	storetest.WrongType:     func(r *rule.Record) { r.LeaderID = "no such name!" },
	storetest.UnknownSchema: func(r *rule.Record) { r.LockFor = -1 },
	storetest.TokenBehind:   func(r *rule.Record) { r.Token-- },
	storetest.RecordGone:    nil,
	storetest.LeaderNoLease: func(r *rule.Record) { r.LeaseDuration = 0 },
	storetest.FutureBeat:    func(r *rule.Record) { r.HeartbeatAt = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC) },
}

func TestRecordThatDoesNotSayWhatItNeedsIsCorrupt(t *testing.T) {
	t.Parallel()
	for _, needs := range []rule.Version{-1, -100} {
		s, service := open(t, filepath.Join(t.TempDir(), "leases"), file.Clock{})
		if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
			t.Fatal(err)
		}
		s.SpoilCarried("jobs", rule.Carried{Needs: needs})
		if snap, err := s.Get(t.Context(), "jobs"); !errors.Is(err, leadership.RecordCorrupt) {
			t.Errorf("%d: got %+v, %v; want %s", needs, snap.Record, err, leadership.RecordCorrupt)
		}
	}
}

func open(t testing.TB, path string, clock file.Clock) (*file.Store, *service.Service) {
	t.Helper()
	s, err := file.Open(path, file.Config{Clock: clock})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s, service.New(s)
}

func ask(candidate string) leadership.AcquireRequest {
	var key leadership.Key
	copy(key[:], candidate)
	return leadership.AcquireRequest{Election: "jobs", CandidateID: leadership.CandidateID(candidate), Key: &key}
}

// Another process may be shutting down.
func TestASecondProcessOnTheFolderWaitsASecondAndIsRefusedByName(t *testing.T) {
	for after, opens := range map[time.Duration]bool{990 * time.Millisecond: true, 1010 * time.Millisecond: false} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "leases")
			first, _ := open(t, path, file.Clock{})
			closed := make(chan error)
			go func() {
				time.Sleep(after)
				closed <- first.Close()
			}()
			second, err := file.Open(path, file.Config{})
			switch {
			case opens && err != nil:
				t.Errorf("closed after %v: %v", after, err)
			case opens:
				second.Close()
			case err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "in use by another process"):
				t.Errorf("closed after %v: got %v", after, err)
			}
			if err := <-closed; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheFolderIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases")
	s, _ := open(t, path, file.Clock{})
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v; want 0700", info.Mode(), err)
	}
	s.Close()
	for _, mode := range []os.FileMode{0o750, 0o701} {
		require.NoError(t, os.Chmod(path, mode))
		if _, err := file.Open(path, file.Config{}); err == nil || !strings.Contains(err.Error(), "chmod 700 "+path) {
			t.Errorf("a folder of mode %v: got %v", mode, err)
		}
	}
	shared, used := filepath.Join(t.TempDir(), "shared"), filepath.Join(t.TempDir(), "used")
	err = errors.Join(os.Mkdir(shared, 0o700), os.Chmod(shared, 0o777|os.ModeSticky), // as /tmp is
		os.Mkdir(used, 0o755), os.WriteFile(filepath.Join(used, "notes"), nil, 0o600))
	require.NoError(t, err)
	for _, path := range []string{shared, used} {
		_, err := file.Open(path, file.Config{})
		if err == nil || strings.Contains(err.Error(), "chmod") || !strings.Contains(err.Error(), "name a new folder") {
			t.Errorf("%s, which is not for a store alone: got %v", path, err)
		}
	}
}

func TestAFolderOfAnotherUserIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases")
	s, _ := open(t, path, file.Clock{})
	s.Close()
	info, err := os.Stat(path)
	require.NoError(t, err)
	if err := file.CheckOwner(info, path, os.Geteuid()); err != nil {
		t.Errorf("the user's own folder: %v", err)
	}
	if err := file.CheckOwner(info, path, os.Geteuid()+1); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("another user's folder: %v", err)
	}
	if os.Geteuid() != 0 {
		return // only root can give a folder away
	}
	require.NoError(t, os.Chown(path, 12345, -1))
	if _, err := file.Open(path, file.Config{}); err == nil || !strings.Contains(err.Error(), "chown -R 0 "+path) {
		t.Errorf("opened by root: %v", err)
	}
}

func TestAFolderThatIsNotOursIsRefused(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("no store\n", 5000)), 0o600))
	whole := filepath.Join(dir, "whole")
	s, _ := open(t, whole, file.Clock{})
	s.Close()
	full := filepath.Join(dir, "full")
	require.NoError(t, errors.Join(os.Mkdir(full, 0o700), os.WriteFile(filepath.Join(full, "text.new"), nil, 0o600)))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(whole, link))
	_, err := file.Check(link + "/")
	if _, err2 := file.Open(link+"/", file.Config{}); err == nil || err2 == nil || !strings.Contains(err.Error()+err2.Error(), "it is a link") {
		t.Errorf("the link with a slash: got %v and %v", err, err2)
	}
	for path, why := range map[string]string{
		full:                                    "it has files in it that are not the store's",
		text:                                    "it is a file, and a store is a folder",
		link:                                    "it is a link",
		filepath.Join(dir, "no", "such", "one"): "does not exist",
	} {
		if s, err := file.Open(path, file.Config{}); err == nil {
			s.Close()
			t.Errorf("%s was opened", path)
		} else if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: got %v, want something with %q", path, err, why)
		}
	}
}
