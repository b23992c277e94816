package file_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"regent/leadership"
	"regent/store/file"
)

func read(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// meddle changes a file that is not open, and leaves the digest as it is except for the number of
// the transaction.
func meddle(t testing.TB, path string, change func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("meta"))
		value, err := file.Unseal([]byte("digest"), b.Get([]byte("digest")))
		if err != nil {
			return err
		}
		value = slices.Clone(value)
		binary.BigEndian.PutUint64(value, uint64(tx.ID()))
		if err := b.Put([]byte("digest"), file.Seal([]byte("digest"), value)); err != nil {
			return err
		}
		return change(tx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// led is a file in which ann leads two elections, one of them for the second time, and all was
// announced but the last event.
func led(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "regent.db")
	s, service := open(t, path, file.Clock{})
	for _, e := range []leadership.Election{"jobs", "mail", "jobs"} {
		r := ask("ann")
		r.Election = e
		g, err := service.Acquire(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := service.Renew(t.Context(), leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: g.Key, Token: g.Token}); err != nil {
			t.Fatal(err)
		}
		if e == "jobs" && g.Token == 1 {
			if _, err := service.Release(t.Context(), leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: g.Key, Token: g.Token}); err != nil {
				t.Fatal(err)
			}
		}
	}
	ids := []leadership.EventID{{Election: "jobs", Revision: 1}, {Election: "jobs", Revision: 2}, {Election: "nobody", Revision: 7}}
	if err := s.MarkAnnounced(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAFileThatHoldsAnythingElseThanWasCommittedIsRefused(t *testing.T) {
	t.Parallel()
	jobs1 := file.EventKey(leadership.EventID{Election: "jobs", Revision: 1})
	jobs3 := file.EventKey(leadership.EventID{Election: "jobs", Revision: 3})
	put := func(bucket string, key, value []byte) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Put(key, file.Seal(key, value)) }
	}
	remove := func(bucket string, key []byte) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			if b := tx.Bucket([]byte(bucket)); b.Get(key) == nil {
				return errors.New("there is no such key")
			}
			return tx.Bucket([]byte(bucket)).Delete(key)
		}
	}
	day := binary.BigEndian.AppendUint64(nil, uint64(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC).UnixNano()))
	for name, change := range map[string]func(*bbolt.Tx) error{
		"an event before the newest is gone":     remove("events", jobs1),
		"an event does not wait to be announced": remove("outbox", jobs3),
		"an event waits once more":               put("outbox", jobs1, nil),
		"a place among the times is gone": func(tx *bbolt.Tx) error {
			c := tx.Bucket([]byte("times")).Cursor()
			c.First()
			return c.Delete()
		},
		"a heartbeat is another":      put("heartbeats", []byte("jobs"), day),
		"an election there never was": put("leadership", []byte("phantom"), nil),
		"the last commit was earlier": put("meta", []byte("now"), day),
		"a value stands in another bucket": func(tx *bbolt.Tx) error {
			beats, records := tx.Bucket([]byte("heartbeats")), tx.Bucket([]byte("leadership"))
			beat, record := slices.Clone(beats.Get([]byte("jobs"))), slices.Clone(records.Get([]byte("jobs")))
			return errors.Join(beats.Put([]byte("jobs"), record), records.Put([]byte("jobs"), beat))
		},
		"the digest is gone": remove("meta", []byte("digest")),
		"the digest is of another transaction": func(tx *bbolt.Tx) error {
			value, _ := file.Unseal([]byte("digest"), tx.Bucket([]byte("meta")).Get([]byte("digest")))
			value = slices.Clone(value)
			binary.BigEndian.PutUint64(value, uint64(tx.ID()-1))
			return put("meta", []byte("digest"), value)(tx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := led(t)
			meddle(t, path, change)
			s, err := file.Open(path, file.Config{})
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), path+" is damaged") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAFileIsOpenedHoweverItIsLaidOut(t *testing.T) {
	t.Parallel()
	path := led(t)
	meddle(t, path, func(tx *bbolt.Tx) error { // takes everything out and puts it back
		b := tx.Bucket([]byte("events"))
		type entry struct{ key, value []byte }
		var all []entry
		err := b.ForEach(func(key, value []byte) error {
			all = append(all, entry{slices.Clone(key), slices.Clone(value)})
			return nil
		})
		for _, e := range all {
			err = errors.Join(err, b.Delete(e.key))
		}
		for _, e := range slices.Backward(all) {
			err = errors.Join(err, b.Put(e.key, e.value))
		}
		return err
	})
	for range 2 {
		s, service := open(t, path, file.Clock{})
		if l, err := service.Get(t.Context(), "jobs"); err != nil || l.Token != 2 {
			t.Errorf("got token %d, %v; want 2", l.Token, err)
		}
		s.Close()
	}
}

func TestWhatWasPrunedAndAnnouncedIsMissingFromTheDigestToo(t *testing.T) {
	t.Parallel()
	f := newAged(t)
	f.change("jobs", 5)
	f.change("mail", 5)
	if err := f.MarkAnnounced(t.Context(), []leadership.EventID{{Election: "mail", Revision: 2}, {Election: "mail", Revision: 99}}); err != nil {
		t.Fatal(err)
	}
	f.reopen(leadership.MinHistory)
	f.uptime += 2 * leadership.MinHistory
	f.change("jobs", 1)
	f.reopen(leadership.MinHistory)
	if events, err := f.Events(t.Context(), "jobs", 0, 10); err != nil || len(events) != 1 {
		t.Errorf("got %v, %v; want the newest event", events, err)
	}
}

// A write that the disk has lost, though it said that it was durable, leaves on its page what was
// there before. The meta pages are left out: one of them as it was makes the file as it was, whole.
func TestEarlierVersionOfAPageGrantsNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "regent.db")
	s, service := open(t, path, file.Clock{})
	var versions [][]byte
	for i := range 12 {
		r := ask("ann")
		r.Election = electionOf(i % 3)
		g, err := service.Acquire(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, inUse(read(t, path)))
		if _, err := service.Release(t.Context(), leadership.LeaseRequest{Election: r.Election, CandidateID: "ann", Key: g.Key, Token: g.Token}); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	last := inUse(read(t, path))
	refused := 0
	for _, version := range versions {
		for id := uint64(2); int(id) < len(version)/pageSize; id++ {
			if slices.Equal(page(last, id), page(version, id)) {
				continue
			}
			content := slices.Clone(last)
			copy(page(content, id), page(version, id))
			outdated := written(t, content)
			s, err := file.Open(outdated, file.Config{})
			if err != nil {
				if refused++; !strings.Contains(err.Error(), outdated+" is damaged") || strings.Contains(err.Error(), "\n") {
					t.Errorf("got %v", err)
				}
				continue
			}
			for i := range 3 { // the page was not in use
				if snap, err := s.Get(t.Context(), electionOf(i)); err != nil || snap.Record.Token != 4 || snap.Record.Revision != 8 {
					t.Errorf("page %d of before: got %+v, %v; want token 4 and revision 8", id, snap.Record, err)
				}
			}
			s.Close()
		}
	}
	if refused == 0 {
		t.Error("no page was in use that was another before")
	}
}

func TestFileOfAnUnknownVersionIsRefusedByName(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"0", "1", "4", "", "3 "} {
		path := led(t)
		meddle(t, path, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("meta")).Put([]byte("schema"), file.Seal([]byte("schema"), []byte(version)))
		})
		_, err := file.Open(path, file.Config{})
		if want := fmt.Sprintf("its schema is %q, and this program reads 2 and 3", version); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v", err)
		}
	}
}

func TestAPlaceInTheOutboxThatWasDamagedIsNoOtherEventsPlace(t *testing.T) {
	t.Parallel()
	s, service := open(t, filepath.Join(t.TempDir(), "regent.db"), file.Clock{})
	if _, err := service.Acquire(t.Context(), ask("ann")); err != nil {
		t.Fatal(err)
	}
	other := ask("ann")
	other.Election = "jobt" // a bit away
	if _, err := service.Acquire(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	jobs := leadership.EventID{Election: "jobs", Revision: 1}
	jobt := leadership.EventID{Election: "jobt", Revision: 1}
	if err := s.MarkAnnounced(t.Context(), []leadership.EventID{jobs, jobt}); err != nil {
		t.Fatal(err)
	}
	err := s.Meddle(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("outbox")).Put(file.EventKey(jobt), file.Seal(file.EventKey(jobs), nil))
	})
	if err != nil {
		t.Fatal(err)
	}
	if events, err := s.Unannounced(t.Context(), "", 10); !errors.Is(err, leadership.RecordCorrupt) {
		t.Errorf("got %v, %v; want %s", events, err, leadership.RecordCorrupt)
	}
}

func BenchmarkOpeningTenThousandElectionsWithHistory(b *testing.B) {
	path := filepath.Join(b.TempDir(), "regent.db")
	s, err := file.Open(path, file.Config{})
	if err != nil {
		b.Fatal(err)
	}
	const elections, events, callers = 10_000, 10, 500
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range elections / callers * events {
				e := leadership.Election(fmt.Sprintf("reports.%05d", c*elections/callers+i/events))
				_, err := s.Update(b.Context(), e, func(s leadership.Snapshot) (leadership.Change, error) {
					lock := s.Record.Policy.Config.LockDelay + time.Millisecond
					return leadership.Configure(s, leadership.ConfigureCommand{Config: leadership.Config{LockDelay: lock}})
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	s.Close()
	for b.Loop() {
		s, err := file.Open(path, file.Config{})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
