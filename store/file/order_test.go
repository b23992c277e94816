package file_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/store/file"
)

func TestAReadThatDoesNotSeeAChangeIsNoLaterThanTheChange(t *testing.T) {
	t.Parallel()
	var clock atomic.Int64
	s, err := file.Open(filepath.Join(t.TempDir(), "leases"), file.Config{Clock: file.Clock{
		BootID: "a", SinceBoot: func() time.Duration { return time.Duration(clock.Load()) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	var before rule.Snapshot
	after, err := s.Update(t.Context(), "reports", rule.Expect{}, func(now rule.Snapshot) (rule.Change, error) {
		clock.Add(int64(time.Minute)) // it takes its time
		var err error
		if before, err = s.Get(t.Context(), "reports"); err != nil {
			t.Error(err)
		}
		return rule.Apply(now, leadership.Configure{})
	})
	if err != nil {
		t.Fatal(err)
	}
	if before.Record.Revision != 0 || before.Now.After(after.Now) {
		t.Errorf("revision %d was read at %v, and revision %d is of %v", before.Record.Revision, before.Now, after.Record.Revision, after.Now)
	}
	read, err := s.Get(t.Context(), "reports")
	if want := after.Now.Add(time.Minute); err != nil || read.Record.Revision != 1 || !read.Now.Equal(want) {
		t.Errorf("then revision %d is read at %v, want 1 at %v (%v)", read.Record.Revision, read.Now, want, err)
	}
	clock.Add(-int64(2 * time.Minute)) // the clock was read before the commit, and the tables after it
	if read, err = s.Get(t.Context(), "reports"); err != nil || read.Now.Before(after.Now) {
		t.Errorf("a change of %v is seen at %v (%v)", after.Now, read.Now, err)
	}
}
