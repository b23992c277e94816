package file_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/store/file"
)

// A read that does not see a change is no later than the change, and no read is of before it was
// asked for.
func TestAReadIsOfItsTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases")
	synctest.Test(t, func(t *testing.T) {
		var clock atomic.Int64
		s, err := file.Open(path, file.Config{Clock: file.Clock{
			BootID: "a", SinceBoot: func() time.Duration { return time.Duration(clock.Load()) },
		}})
		require.NoError(t, err)
		defer s.Close()
		var before rule.Snapshot
		late := make(chan rule.Snapshot, 1)
		after, err := s.Update(t.Context(), "reports", rule.Expect{}, func(now rule.Snapshot) (rule.Change, error) {
			var err error
			if before, err = s.Get(t.Context(), "reports"); err != nil {
				t.Error(err)
			}
			clock.Add(int64(time.Minute)) // it takes its time
			go func() {
				snap, err := s.Get(t.Context(), "reports")
				if err != nil {
					t.Error(err)
				}
				late <- snap
			}()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if snap, err := s.Get(ctx, "reports"); !errors.Is(err, leadership.StoreUnavailable) {
				t.Errorf("a read during a change of a minute ago: %+v, %v", snap, err)
			}
			return rule.Apply(now, leadership.Configure{})
		})
		require.NoError(t, err)
		if before.Record.Revision != 0 || before.Now.After(after.Now) {
			t.Errorf("revision %d was read at %v, and revision %d is of %v", before.Record.Revision, before.Now, after.Record.Revision, after.Now)
		}
		want := after.Now.Add(time.Minute)
		if snap := <-late; snap.Record.Revision != 1 || !snap.Now.Equal(want) {
			t.Errorf("then revision %d is read at %v, want 1 at %v", snap.Record.Revision, snap.Now, want)
		}
		clock.Add(-int64(2 * time.Minute)) // the clock was read before the commit, and the tables after it
		if read, err := s.Get(t.Context(), "reports"); err != nil || read.Now.Before(after.Now) {
			t.Errorf("a change of %v is seen at %v (%v)", after.Now, read.Now, err)
		}
	})
}
