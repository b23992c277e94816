package spanner

import (
	"sync"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

func TestTheInterceptorsAreForEmulatorsOnly(t *testing.T) {
	t.Setenv(EmulatorVariable, "")
	cloud, emulator := Config{Database: "d"}, Config{Database: "d", EmulatorHost: "127.0.0.1:1"}
	if got := len(cloud.options()); got != 1 { // the one that watches commits
		t.Errorf("%d options on Cloud Spanner, want 1", got)
	}
	want := len(emulator.options())
	t.Setenv(EmulatorVariable, "127.0.0.1:1")
	if got := len(cloud.options()); got != want || got <= 1 {
		t.Errorf("%d options with %s, %d with EmulatorHost", got, EmulatorVariable, want)
	}
}

func TestTransactionsThatTheEmulatorHasForgottenAreRunAgain(t *testing.T) {
	t.Parallel()
	const callers, each = 6, 5
	s := opened(t, migrated(t))
	s.turns = nil // as on Cloud Spanner: all at once, on one session
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				if _, err := s.Update(t.Context(), "jobs", rule.Expect{}, longerLock); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	snap, err := s.Get(t.Context(), "jobs")
	if want := leadership.Revision(callers * each); err != nil || snap.Record.Revision != want {
		t.Errorf("revision %d, %v; want %d", snap.Record.Revision, err, want)
	}
}

// longerLock changes what it read, so that a lost update shows.
func longerLock(s rule.Snapshot) (rule.Change, error) {
	c := s.Record.Policy.Config
	c.LockDelay += time.Second
	return rule.Apply(s, leadership.Configure{Config: c})
}
