package file_test

import (
	"bytes"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"regent/leadership"
	"regent/store/file"
)

// A held record and its event as the schema before has them.
const (
	recordBefore = `{"schema":1,"fencingToken":1,"revision":1,"configLeaseDurationMs":60000,"configLockDelayMs":5000,"deleted":false,` +
		`"leaderId":"ann","keyHash":"AQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","leaseDurationMs":60000,` +
		`"acquiredAt":"2026-01-02T03:04:05Z","metadata":{"a":1},"endedAt":"0001-01-01T00:00:00Z","lockForNs":0}`
	eventBefore = `{"schema":1,"type":"acquired","at":"2026-01-02T03:04:05Z","leaderId":"ann","previousLeaderId":"","fencingToken":1,"requestId":"r"}`
)

// TestFileOfTheVersionBeforeIsReadAndRewritten gives a file the layout, a record and an event of
// the version before.
func TestFileOfTheVersionBeforeIsReadAndRewritten(t *testing.T) {
	t.Parallel()
	f := &shared{path: t.TempDir() + "/regent.db", start: time.Now()}
	s := f.open(t)
	ann := leadership.AcquireCommand{CandidateID: "ann", KeyHash: leadership.KeyHash{1, 2, 3}, LeaseDuration: time.Minute}
	acquired, err := s.Update(t.Context(), "jobs", func(s leadership.Snapshot) (leadership.Change, error) { return leadership.Acquire(s, ann) })
	if err != nil {
		t.Fatal(err)
	}
	if err := f.store.Rewrite("jobs", recordBefore, eventBefore, "2"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = f.open(t)
	got, err := s.Get(t.Context(), "jobs")
	want := leadership.Record{
		Election: "jobs", Token: 1, Revision: 1, Needs: 1, LeaderID: "ann", KeyHash: ann.KeyHash, LeaseDuration: time.Minute,
		AcquiredAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), HeartbeatAt: acquired.Record.HeartbeatAt.UTC(), Metadata: `{"a":1}`,
		Policy: leadership.Policy{Config: leadership.Config{LeaseDuration: time.Minute, LockDelay: 5 * time.Second}},
	}
	if err != nil || got.Record != want {
		t.Fatalf("got %+v, %v\nwant %+v", got.Record, err, want)
	}
	events, err := s.Events(t.Context(), "jobs", 0, 10)
	if err != nil || len(events) != 1 || events[0].RequestID != "r" || events[0].Actor != "" {
		t.Errorf("got events %+v, %v", events, err)
	}
	renewal := leadership.Renewal{Election: "jobs", CandidateID: "ann", KeyHash: ann.KeyHash, Token: 1}
	if a := s.Renew(t.Context(), []leadership.Renewal{renewal})[0]; a.Err != nil {
		t.Errorf("renew: %v", a.Err)
	}
	_, err = s.Update(t.Context(), "jobs", func(s leadership.Snapshot) (leadership.Change, error) { return leadership.Release(s, renewal) })
	if err != nil {
		t.Fatal(err)
	}
	f.store.Meddle(func(tx *bbolt.Tx) error {
		if value := tx.Bucket([]byte("leadership")).Get([]byte("jobs")); !bytes.Contains(value, []byte(`"schema":2`)) {
			t.Errorf("after a change the record is %s", value)
		}
		if value := tx.Bucket([]byte("meta")).Get([]byte("schema")); !bytes.HasSuffix(value, []byte("3")) {
			t.Errorf("the file has the layout %q", value)
		}
		return nil
	})
}

// TestAfterAnotherBootALatestEndStaysAsFarAway also for a record that only a newer program may
// decide on: that program finds the boot as this one has left it.
func TestAfterAnotherBootALatestEndStaysAsFarAway(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/regent.db"
	newer := leadership.Codec{Version: leadership.ProgramVersion + 1}
	open := func(boot string, codec leadership.Codec) *file.Store {
		s, err := file.Open(path, file.Config{Clock: file.Clock{BootID: boot, SinceBoot: func() time.Duration { return time.Hour }}, Codec: codec})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open("first", newer)
	for _, e := range []leadership.Election{"known", "new"} {
		_, err := s.Update(t.Context(), e, func(s leadership.Snapshot) (leadership.Change, error) {
			ch, err := leadership.Acquire(s, leadership.AcquireCommand{CandidateID: "ann", KeyHash: leadership.KeyHash{1}, LeaseDuration: time.Minute})
			ch.Record.EndsBy, ch.Record.EndsBecause = s.Now.Add(20*time.Second), leadership.EndsDrained
			if e == "new" {
				ch.Record.Needs, ch.Record.Standing.Unknown = newer.Version, `{"ballot":1}`
			}
			return ch, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	open("second", leadership.Codec{}).Close()
	s = open("second", newer)
	defer s.Close()
	for _, e := range []leadership.Election{"known", "new"} {
		snap, err := s.Get(t.Context(), e)
		if l := snap.Lease(); err != nil || l.ExpiresIn != 20*time.Second || l.EndsIn != 20*time.Second {
			t.Errorf("%s: %v left, %v until its latest end, %v; want 20s", e, l.ExpiresIn, l.EndsIn, err)
		}
	}
}
