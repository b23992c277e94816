package file_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"regent/leadership"
	"regent/store/file"
	"regent/store/storetest"
)

func TestTheStoreKeepsItsContract(t *testing.T) { storetest.RunStore(t, backing) }

func TestTheProtocolHoldsOnFile(t *testing.T) { storetest.RunProtocol(t, backing) }

func BenchmarkFile(b *testing.B) { storetest.Bench(b, backing) }

// shared is a file that several handles share, for only one of them can have it open.
type shared struct {
	path  string
	start time.Time
	ahead atomic.Int64 // nanoseconds that the clock was moved by

	mu    sync.Mutex
	store *file.Store // nil while no handle is open
	users int
}

// handle is one user of the file. The last to close it closes the file.
type handle struct {
	*file.Store
	file   *shared
	closed sync.Once
}

func backing(t testing.TB) storetest.Backing {
	f := &shared{path: filepath.Join(t.TempDir(), "regent.db"), start: time.Now()}
	return storetest.Backing{
		Open:      f.open,
		OpenAs:    f.openAs,
		Exclusive: true,
		Advance:   func(_ testing.TB, d time.Duration) { f.ahead.Add(int64(d)) },
		Damage: func(t testing.TB, e leadership.Election, d storetest.Damage) {
			if err := f.store.Spoil(e, damages[d]); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// clock runs in real time, and as much ahead as it was moved. All of the test is one boot.
func (f *shared) clock() file.Clock {
	return file.Clock{BootID: "boot", SinceBoot: func() time.Duration { return time.Since(f.start) + time.Duration(f.ahead.Load()) }}
}

func (f *shared) open(t testing.TB) leadership.Store { return f.openAs(t, leadership.Codec{}) }

func (f *shared) openAs(t testing.TB, codec leadership.Codec) leadership.Store {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.store == nil {
		s, err := file.Open(f.path, file.Config{Clock: f.clock(), History: storetest.History, Codec: codec})
		if err != nil {
			t.Fatal(err)
		}
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

var damages = map[storetest.Damage]func(record, heartbeat []byte) ([]byte, []byte){
	storetest.MissingField:  edit(`"endsBecause":"",`, ``),
	storetest.WrongType:     edit(`"fencingToken":2`, `"fencingToken":"2"`),
	storetest.UnknownSchema: edit(`"schema":2`, `"schema":99`),
	storetest.TokenBehind:   edit(`"fencingToken":2`, `"fencingToken":1`),
	storetest.RecordGone:    func(_, _ []byte) ([]byte, []byte) { return nil, nil },
	storetest.LeaderNoLease: func(record, _ []byte) ([]byte, []byte) { return record, nil },
	storetest.FutureBeat: func(record, _ []byte) ([]byte, []byte) {
		return record, binary.BigEndian.AppendUint64(nil, uint64(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()))
	},
}

func edit(from, to string) func(record, heartbeat []byte) ([]byte, []byte) {
	return func(record, heartbeat []byte) ([]byte, []byte) {
		if !bytes.Contains(record, []byte(from)) {
			panic(from + " is not in " + string(record))
		}
		return bytes.Replace(record, []byte(from), []byte(to), 1), heartbeat
	}
}

func TestRecordThatDoesNotSayWhatItNeedsIsCorrupt(t *testing.T) {
	t.Parallel()
	for _, needs := range []string{`"needs":0`, `"needs":-1`} {
		s, service := open(t, filepath.Join(t.TempDir(), "regent.db"), file.Clock{})
		if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
			t.Fatal(err)
		}
		if err := s.Spoil("jobs", edit(`"needs":1`, needs)); err != nil {
			t.Fatal(err)
		}
		if snap, err := s.Get(t.Context(), "jobs"); !errors.Is(err, leadership.RecordCorrupt) {
			t.Errorf("%s: got %+v, %v; want %s", needs, snap.Record, err, leadership.RecordCorrupt)
		}
	}
}

func open(t testing.TB, path string, clock file.Clock) (*file.Store, *leadership.Service) {
	t.Helper()
	s, err := file.Open(path, file.Config{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, leadership.New(s)
}

func ask(candidate string) leadership.AcquireRequest {
	var key leadership.Key
	copy(key[:], candidate)
	return leadership.AcquireRequest{Election: "jobs", CandidateID: leadership.CandidateID(candidate), Key: &key}
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
			path := filepath.Join(t.TempDir(), "regent.db")
			var uptime time.Duration
			clock := func(boot string) file.Clock {
				return file.Clock{BootID: boot, SinceBoot: func() time.Duration { return uptime }}
			}
			uptime = 100 * time.Hour
			s, service := open(t, path, clock(c.boots[0]))
			if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
				t.Fatal(err)
			}
			uptime += 29 * time.Second
			before, err := service.Get(t.Context(), "jobs")
			if err != nil {
				t.Fatal(err)
			}
			s.Close()

			uptime = c.then // the machine was off for an unknown time
			_, service = open(t, path, clock(c.boots[1]))
			after, err := service.Get(t.Context(), "jobs")
			if err != nil {
				t.Fatal(err)
			}
			if after.ExpiresIn != leadership.DefaultLeaseDuration || after.Token != 1 || after.ReadAt.Before(before.ReadAt.Add(-30*time.Second)) {
				t.Errorf("after the boot: %+v, want a full lease of token 1", after)
			}
			uptime += leadership.DefaultLeaseDuration - time.Nanosecond
			if _, err := service.Acquire(t.Context(), ask("bob")); !errors.Is(err, leadership.LeaseHeld) {
				t.Errorf("just before the end: %v, want %s", err, leadership.LeaseHeld)
			}
			uptime += time.Nanosecond
			if g, err := service.Acquire(t.Context(), ask("bob")); err != nil || g.Token != 2 {
				t.Errorf("at the end: token %d, %v; want 2", g.Token, err)
			}
		})
	}
}

func TestAfterARestartInTheSameBootALeaseGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "regent.db")
	uptime := time.Hour
	clock := file.Clock{BootID: "boot-1", SinceBoot: func() time.Duration { return uptime }}
	s, service := open(t, path, clock)
	if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
		t.Fatal(err)
	}
	s.Close()
	uptime += 20 * time.Second
	_, service = open(t, path, clock)
	if l, err := service.Get(t.Context(), "jobs"); err != nil || l.ExpiresIn != 10*time.Second {
		t.Errorf("got %v left, %v; want 10s", l.ExpiresIn, err)
	}
}

func TestALockDelayStartsAnewAfterAnotherBoot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "regent.db")
	uptime := time.Hour
	clock := func(boot string) file.Clock {
		return file.Clock{BootID: boot, SinceBoot: func() time.Duration { return uptime }}
	}
	s, service := open(t, path, clock("boot-1"))
	config := leadership.ConfigureCommand{Config: leadership.Config{LockDelay: time.Minute}}
	if _, err := service.Configure(t.Context(), leadership.ConfigureRequest{Election: "jobs", ConfigureCommand: config}); err != nil {
		t.Fatal(err)
	}
	if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
		t.Fatal(err)
	}
	uptime += 80 * time.Second // 50 s into the lock
	if _, err := service.Expire(t.Context(), "jobs"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	uptime = time.Second
	_, service = open(t, path, clock("boot-2"))
	if l, err := service.Get(t.Context(), "jobs"); err != nil || l.LockedFor != time.Minute {
		t.Errorf("locked for %v, %v; want a full minute", l.LockedFor, err)
	}
}

func TestASecondProcessOnTheFileIsRefusedByName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "regent.db")
	open(t, path, file.Clock{})
	_, err := file.Open(path, file.Config{})
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("got %v", err)
	}
}

func TestTheFileIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "regent.db")
	s, _ := open(t, path, file.Clock{})
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	s.Close()
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Open(path, file.Config{}); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
		t.Errorf("a file that others can read: got %v", err)
	}
}

func TestAFileOfAnotherUserIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "regent.db")
	s, _ := open(t, path, file.Clock{})
	s.Close()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.CheckOwner(info, path, os.Geteuid()); err != nil {
		t.Errorf("the user's own file: %v", err)
	}
	if err := file.CheckOwner(info, path, os.Geteuid()+1); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("another user's file: %v", err)
	}
	if os.Geteuid() != 0 {
		return // only root can give a file away
	}
	if err := os.Chown(path, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Open(path, file.Config{}); err == nil || !strings.Contains(err.Error(), "chown 0 "+path) {
		t.Errorf("opened by root: %v", err)
	}
}

func TestAFileThatIsNotOursIsRefused(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "foreign.db")
	db, err := bbolt.Open(foreign, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err }); err != nil {
		t.Fatal(err)
	}
	db.Close()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database\n", 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(foreign, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{foreign, text, link, dir, filepath.Join(dir, "no", "such", "folder.db")} {
		if s, err := file.Open(path, file.Config{}); err == nil {
			s.Close()
			t.Errorf("%s was opened", path)
		} else if !strings.Contains(err.Error(), path) {
			t.Errorf("%s: the error does not name it: %v", path, err)
		}
	}
}

// The second of these makes another record that could have been written: only its checksum tells.
func TestAFlippedBitIsNoticed(t *testing.T) {
	for _, text := range []string{`"leaderId"`, `nn"`} {
		s, service := open(t, filepath.Join(t.TempDir(), "regent.db"), file.Clock{})
		if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
			t.Fatal(err)
		}
		if err := s.FlipBit("jobs", text); err != nil {
			t.Fatal(err)
		}
		l, err := service.Get(t.Context(), "jobs")
		if !errors.Is(err, leadership.RecordCorrupt) {
			t.Errorf("a bit of %s: got %+v, %v, want %s", text, l, err, leadership.RecordCorrupt)
		}
	}
}

func TestAfterACommitThatFailedNothingIsReadOrWritten(t *testing.T) {
	s, service := open(t, filepath.Join(t.TempDir(), "regent.db"), file.Clock{})
	if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
		t.Fatal(err)
	}
	if err := s.Fail(); err != nil {
		t.Fatal(err)
	}
	_, err := service.Acquire(t.Context(), ask("ann"))
	if !errors.Is(err, leadership.OutcomeUnknown) {
		t.Errorf("the commit that fails: got %v, want %s", err, leadership.OutcomeUnknown)
	}
	_, err = service.Acquire(t.Context(), ask("ann"))
	if !errors.Is(err, leadership.StoreUnavailable) {
		t.Errorf("a later one: got %v, want %s", err, leadership.StoreUnavailable)
	}
	_, err = service.Get(t.Context(), "jobs")
	if !errors.Is(err, leadership.StoreUnavailable) {
		t.Errorf("a read: got %v, want %s", err, leadership.StoreUnavailable)
	}
}
