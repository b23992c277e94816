package telemetry_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/telemetry/telemetrytest"
)

// handOver lets the leader name a successor.
func handOver(w *telemetrytest.Fixture, lease leadership.LeaseRequest, to leadership.CandidateID, within time.Duration) {
	w.Helper()
	_, err := w.Service.Do(w.Context(), leadership.HandOver{LeaseRequest: lease, To: to, Within: within})
	require.NoError(w, err)
}

// moved returns what has changed of the hand-overs.
func moved(w *telemetrytest.Fixture, before telemetrytest.Values) telemetrytest.Values {
	return w.Read().Since(before)
}

func TestAHandOverIsCountedAndItsGapIsTimed(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		before := w.Read()
		ann := w.Lead("jobs", "ann")
		handOver(w, ann, "bob", time.Minute)
		w.Settle(5 * time.Second)
		_, err := w.Service.Do(w.Context(), leadership.SayReady{LeaseRequest: leadership.LeaseRequest{Election: "jobs", CandidateID: "bob", Key: w.Key("bob"), Token: ann.Token}})
		require.NoError(w, err)
		w.Settle(2 * time.Second)
		_, err = w.Service.Do(w.Context(), leadership.Yield{LeaseRequest: ann})
		require.NoError(w, err)
		w.Settle(100 * time.Millisecond)
		w.Lead("jobs", "bob")
		now := moved(w, before)
		for name, want := range map[string]float64{
			"regent.handovers{outcome=started}":                           1,
			"regent.handovers{outcome=completed}":                         1,
			"regent.handovers{outcome=timed_out}":                         0,
			"regent.handovers{outcome=released}":                          0,
			"regent.handovers.duration:sum":                               7.1,
			"regent.handovers.gap:sum":                                    0.1,
			"regent.leadership.term.duration:sum{end=released}":           7.1,
			"regent.leadership.transition.duration:count{after=released}": 1,
			"regent.leadership.transition.duration:sum{after=released}":   0,
			"regent.leadership.changes{type=yielded}":                     1,
			"regent.leadership.changes{type=ready}":                       1,
			"regent.leadership.terms.limited{because=handOver}":           1,
			"regent.lease.operations{op=handOver,outcome=ok}":             1,
			"regent.lease.operations{op=yield,outcome=ok}":                1,
			"regent.leadership.splitbrain{op=handOver}":                   0,
			"regent.leadership.transition.duration:count{after=expired}":  0,
			"regent.leadership.term.duration:count{end=expired}":          0,
			"regent.leadership.preemptions":                               0,
			"regent.leadership.changes{type=handingOver}":                 1,
		} {
			if got := now[name]; got < want-0.001 || got > want+0.001 {
				w.Errorf("%s is %v, want %v", name, got, want)
			}
		}
	})
}

func TestTheDepthOfDelegatedElectionsIsShown(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		delegate := func(lease leadership.LeaseRequest, child string) {
			w.Helper()
			l := leadership.Limits{Depth: leadership.AsParent, Children: leadership.AsParent, Budget: leadership.AsParent}
			_, err := w.Service.Delegate(w.Context(), leadership.DelegateRequest{LeaseRequest: lease, Child: child, Limits: l})
			require.NoError(w, err)
		}
		ann := w.Lead("jobs", "ann")
		delegate(ann, "a")
		delegate(ann, "b")
		delegate(w.Lead("jobs.a", "bob"), "x")
		now := w.Read()
		if n, depth := now["regent.elections.delegated"], now["regent.elections.depth"]; n != 3 || depth != 2 {
			w.Errorf("%v delegated elections, the deepest at %v; want 3, and 2", n, depth)
		}
		_, err := w.Service.Do(w.Context(), leadership.Delete{Election: "jobs.a.x"})
		require.NoError(w, err)
		if n, depth := w.Read()["regent.elections.delegated"], w.Read()["regent.elections.depth"]; n != 2 || depth != 1 {
			w.Errorf("after one was deleted, %v delegated elections, the deepest at %v; want 2, and 1", n, depth)
		}
	})
}

func TestWhatLeadersLeaveBehindIsMeasured(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		before := w.Read()
		ann := w.Lead("jobs", "ann")
		_, err := w.Service.PutCheckpoint(w.Context(), leadership.CheckpointRequest{LeaseRequest: ann, Sequence: 1, Data: []byte(`{"done":4}`)})
		require.NoError(w, err)
		appended := leadership.AppendRequest{LeaseRequest: ann, Entries: []leadership.Entry{{Data: []byte(`12`)}, {Data: []byte(`345`)}}}
		_, err = w.Service.AppendJournal(w.Context(), appended)
		require.NoError(w, err)
		appended.After = 1
		if _, err := w.Service.AppendJournal(w.Context(), appended); err == nil {
			w.Error("an append after the wrong index was not refused")
		}
		_, err = w.Service.SnapshotJournal(w.Context(), leadership.SnapshotRequest{LeaseRequest: ann, UpTo: 2, URI: "gs://bucket/state"})
		require.NoError(w, err)
		now := w.Read().Since(before)
		for name, want := range map[string]float64{
			"regent.ledger.size:sum{op=checkpoint}":                            10,
			"regent.ledger.size:sum{op=journalAppend}":                         5,
			"regent.ledger.size:sum{op=journalSnapshot}":                       17, // the address
			"regent.ledger.duration:count{op=checkpoint}":                      1,
			"regent.ledger.duration:count{op=journalAppend}":                   1, // one was refused
			"regent.ledger.duration:count{op=journalSnapshot}":                 1,
			"regent.journal.entries":                                           2,
			"regent.lease.operations{op=journalAppend,outcome=index_mismatch}": 1,
			"regent.store.duration:count{op=trim,outcome=ok}":                  1,
			"regent.store.duration:count{op=amend,outcome=unavailable}":        0,
		} {
			if now[name] != want {
				w.Errorf("%s is %v, want %v", name, now[name], want)
			}
		}
		if now["regent.store.duration:count{op=amend,outcome=ok}"] < 3 {
			w.Errorf("changes: %v", now)
		}
	})
}
