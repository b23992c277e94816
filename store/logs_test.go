package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/memory"
)

// termOf is a lease of ann's, as populate grants them.
func termOf(e leadership.Election, token leadership.Token) leadership.LeaseRequest {
	return leadership.LeaseRequest{Election: e, CandidateID: "ann", Key: leadership.Key{1}, Token: token}
}

func ledger(s Store) *service.Ledger { return service.NewLedger(service.New(s), s) }

// grow appends so many entries, one after the other.
func grow(t *testing.T, s Store, r leadership.LeaseRequest, after leadership.Index, count int) {
	t.Helper()
	for i := range leadership.Index(count) {
		entry := leadership.Entry{Data: fmt.Appendf(nil, `"entry %d"`, after+i+1)}
		if _, err := ledger(s).AppendJournal(t.Context(), leadership.AppendRequest{LeaseRequest: r, After: after + i, Entries: []leadership.Entry{entry}}); err != nil {
			t.Fatal(err)
		}
	}
}

// leave lets leaders of populate leave logs behind: a checkpoint, a long journal, and one with a
// snapshot.
func leave(t *testing.T, s Store) {
	t.Helper()
	l := ledger(s)
	if _, err := l.PutCheckpoint(t.Context(), leadership.CheckpointRequest{LeaseRequest: termOf("held", 1), Sequence: 1, Task: "task", Data: json.RawMessage(`{"x":1}`)}); err != nil {
		t.Fatal(err)
	}
	grow(t, s, termOf("held", 1), 0, 9)
	if _, err := l.SnapshotJournal(t.Context(), leadership.SnapshotRequest{LeaseRequest: termOf("held", 1), UpTo: 4, Data: json.RawMessage(`"four"`)}); err != nil {
		t.Fatal(err)
	}
	grow(t, s, termOf("held.lock-delay", 1), 0, 3)
	if _, err := l.PutCheckpoint(t.Context(), leadership.CheckpointRequest{LeaseRequest: termOf("regent.relay", 1), Sequence: 1, URI: "gs://bucket/object"}); err != nil {
		t.Fatal(err)
	}
}

// logsOf is what the logs of a store say, but for their marks.
func logsOf(t *testing.T, s Store) map[string]any {
	t.Helper()
	l, all := ledger(s), map[string]any{}
	err := eachLog(t.Context(), s, func(id rule.LogID) error {
		name := fmt.Sprint(id.Election, " ", id.Kind)
		if id.Kind == rule.LogCheckpoint {
			p, err := l.Checkpoint(t.Context(), id.Election)
			p.At = p.At.UTC().Truncate(time.Microsecond)
			all[name] = p
			return err
		}
		h, err := l.Head(t.Context(), id.Election)
		if err != nil {
			return err
		}
		all[name] = []leadership.Index{h.Index, h.Snapshot}
		if h.Snapshot > 0 {
			snap, err := l.ReadSnapshot(t.Context(), id.Election)
			if err != nil {
				return err
			}
			snap.At = snap.At.UTC().Truncate(time.Microsecond)
			all[name+" snapshot"] = snap
		}
		for after := h.Snapshot; after < h.Index; {
			page, err := l.ReadJournal(t.Context(), leadership.JournalRequest{Election: id.Election, After: after, Generation: h.Generation})
			if err != nil {
				return err
			}
			for _, e := range page.Entries {
				e.At = e.At.UTC().Truncate(time.Microsecond)
				all[fmt.Sprint(name, " ", e.Index)], after = e, e.Index
			}
		}
		return nil
	})
	require.NoError(t, err)
	return all
}

// A mark is all that keeps a leader out whose lease the log has once verified.
func TestAfterAMoveNoEarlierLeaderWritesInEitherStore(t *testing.T) {
	t.Parallel()
	c := &clock{}
	from, to := c.memory(0), c.memory(0)
	populate(t, from, c.advance)
	moveAll(t, from, to)
	want := logsOf(t, to)
	for name, s := range map[string]Store{"old": from, "new": to} {
		_, err := ledger(s).AppendJournal(t.Context(), leadership.AppendRequest{LeaseRequest: termOf("held", 1), After: 9, Entries: []leadership.Entry{{Data: json.RawMessage("1")}}})
		if err == nil {
			t.Errorf("the %s store took an append of a leader from before the move", name)
		}
		_, err = ledger(s).PutCheckpoint(t.Context(), leadership.CheckpointRequest{LeaseRequest: termOf("held", 1), Sequence: 1, Data: json.RawMessage("1")})
		if err == nil {
			t.Errorf("the %s store took a checkpoint of a leader from before the move", name)
		}
		if diff := cmp.Diff(want, logsOf(t, s)); diff != "" {
			t.Errorf("the %s store:\n%s", name, diff)
		}
	}
	c.advance(3 * time.Hour)
	g, err := service.New(to).Acquire(t.Context(), leadership.AcquireRequest{Election: "held", CandidateID: "bob", Key: &leadership.Key{2}, LeaseDuration: time.Hour})
	require.NoError(t, err)
	err = ledger(to).Inherit(t.Context(), &g)
	if left := g.Inherited; err != nil || left == nil || left.Token != 1 || left.LeaderID != "ann" || string(left.Data) != `{"x":1}` {
		t.Errorf("the next leader inherits %+v, %v", left, err)
	}
	next := leadership.LeaseRequest{Election: "held", CandidateID: "bob", Key: leadership.Key{2}, Token: g.Token}
	grow(t, to, next, 9, 2)
	after := logsOf(t, to)
	if _, err := Move(t.Context(), from, to, "memory:"); err != nil { // the same again, which has nothing to do
		t.Error(err)
	}
	if diff := cmp.Diff(after, logsOf(t, to)); diff != "" {
		t.Errorf("the same move again has changed the new store:\n%s", diff)
	}
	if _, err := service.New(to).Do(t.Context(), leadership.Release{LeaseRequest: next}); err != nil {
		t.Fatal(err)
	}
	moveAll(t, to, from) // and back, where there is a beginning of it
}

func TestALongJournalIsMovedInParts(t *testing.T) {
	t.Parallel()
	c := &clock{}
	from, to := c.memory(0), c.memory(0)
	if _, err := service.New(from).Acquire(t.Context(), leadership.AcquireRequest{Election: "held", CandidateID: "ann", Key: &leadership.Key{1}, LeaseDuration: time.Hour}); err != nil {
		t.Fatal(err)
	}
	grow(t, from, termOf("held", 1), 0, 600)
	large := leadership.Entry{Data: json.RawMessage(`"` + strings.Repeat("x", leadership.MaxAppendBytes-2) + `"`)}
	for i := range leadership.Index(12) {
		if _, err := ledger(from).AppendJournal(t.Context(), leadership.AppendRequest{LeaseRequest: termOf("held", 1), After: 600 + i, Entries: []leadership.Entry{large}}); err != nil {
			t.Fatal(err)
		}
	}
	moveAll(t, from, to)
}

// A copy is told from a log of another history by what it has.
func TestAMoveIsRefusedIfTheNewStoreHasALogOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]func(t *testing.T, to Store){
		"a shorter journal with other entries": func(t *testing.T, to Store) {
			other := leadership.AppendRequest{LeaseRequest: termOf("held.lock-delay", 1), Entries: []leadership.Entry{{Data: json.RawMessage(`"other"`)}}}
			if _, err := ledger(to).AppendJournal(t.Context(), other); err != nil {
				t.Fatal(err)
			}
		},
		"a longer journal": func(t *testing.T, to Store) { grow(t, to, termOf("held.lock-delay", 1), 0, 5) },
	} {
		c := &clock{}
		from, to := c.memory(0), c.memory(0)
		populate(t, from, c.advance)
		e := leadership.Election("held.lock-delay")
		if _, err := service.New(to).Acquire(t.Context(), leadership.AcquireRequest{Election: e, CandidateID: "ann", Key: &leadership.Key{1}, LeaseDuration: time.Hour}); err != nil {
			t.Fatal(err)
		}
		own(t, to)
		if _, err := service.New(to).Do(t.Context(), leadership.Release{LeaseRequest: termOf(e, 1)}); err != nil {
			t.Fatal(err)
		}
		before, beforeTo := contents(t, from), logsOf(t, to)
		for _, try := range []func() ([]Passage, error){
			func() ([]Passage, error) { return PlanMove(t.Context(), from, to) },
			func() ([]Passage, error) { return Move(t.Context(), from, to, "memory:") },
		} {
			if _, err := try(); !errors.Is(err, leadership.RecordCorrupt) || !strings.Contains(err.Error(), string(e)) {
				t.Errorf("%s: got %v, want %s about %s", name, err, leadership.RecordCorrupt, e)
			}
		}
		if diff := cmp.Diff(before, contents(t, from)) + cmp.Diff(beforeTo, logsOf(t, to)); diff != "" {
			t.Errorf("%s: something was written:\n%s", name, diff)
		}
	}
}

// A leader whose lease the restored log still has as verified does not know of the restore.
func TestAfterARaiseNoEarlierLeaderWritesInALog(t *testing.T) {
	t.Parallel()
	c := &clock{}
	s := c.memory(0)
	populate(t, s, c.advance)
	want := logsOf(t, s)
	for _, prefix := range []string{"held", "held", "regent.relay"} {
		if _, err := Raise(t.Context(), s, Raising{Prefix: prefix, Above: 1000}); err != nil {
			t.Fatal(err)
		}
	}
	put := leadership.CheckpointRequest{Sequence: 1, Data: json.RawMessage("1")}
	for _, e := range []leadership.Election{"held", "regent.relay"} {
		put.LeaseRequest = termOf(e, 1)
		if _, err := ledger(s).PutCheckpoint(t.Context(), put); !errors.Is(err, leadership.TokenStale) {
			t.Errorf("put for %s: %v, want %s", e, err, leadership.TokenStale)
		}
	}
	appends := leadership.AppendRequest{LeaseRequest: termOf("held", 1), After: 9, Entries: []leadership.Entry{{Data: json.RawMessage("1")}}}
	if _, err := ledger(s).AppendJournal(t.Context(), appends); !errors.Is(err, leadership.TokenStale) {
		t.Errorf("append: %v, want %s", err, leadership.TokenStale)
	}
	if diff := cmp.Diff(want, logsOf(t, s)); diff != "" {
		t.Error(diff)
	}
	c.advance(3 * time.Hour)
	g, err := service.New(s).Acquire(t.Context(), leadership.AcquireRequest{Election: "held", CandidateID: "bob", Key: &leadership.Key{2}, LeaseDuration: time.Hour})
	if err != nil || g.Token != 1001 {
		t.Fatal(g, err)
	}
	grow(t, s, leadership.LeaseRequest{Election: "held", CandidateID: "bob", Key: leadership.Key{2}, Token: g.Token}, 9, 1)
}

// Spanner refuses a time that is yet to come.
func TestALogFromAClockThatIsAheadIsMovedOnceTheNewStoreHasReachedIt(t *testing.T) {
	t.Parallel()
	for ahead, refusal := range map[time.Duration]string{2 * time.Second: "", time.Hour: "later than the new store's clock shows"} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			t.Parallel()
			from, to := memory.New(memory.Config{Now: func() time.Time { return time.Now().Add(ahead) }}), onSpanner(t)
			ask := leadership.AcquireRequest{Election: "held", CandidateID: "ann", Key: &leadership.Key{1}, LeaseDuration: time.Hour}
			if _, err := service.New(from).Acquire(t.Context(), ask); err != nil {
				t.Fatal(err)
			}
			grow(t, from, termOf("held", 1), 0, 3)
			_, err := Move(t.Context(), from, to, "memory:")
			switch {
			case refusal != "" && (err == nil || !strings.Contains(err.Error(), refusal)), refusal == "" && err != nil:
				t.Errorf("got %v, want %q", err, refusal)
			case refusal == "" && !cmp.Equal(logsOf(t, from), logsOf(t, to)):
				t.Error(cmp.Diff(logsOf(t, from), logsOf(t, to)))
			}
		})
	}
}

func TestTheSharedSecretMovesAndSurvivesARaise(t *testing.T) {
	t.Parallel()
	c := &clock{}
	from, to, used := c.memory(0), c.memory(0), c.memory(0)
	secret := func(s Store) string {
		t.Helper()
		got, err := service.SharedSecret(t.Context(), s)
		require.NoError(t, err)
		return string(got)
	}
	want, own := secret(from), secret(used)
	if _, err := Raise(t.Context(), from, Raising{Above: 1000}); err != nil || secret(from) != want {
		t.Errorf("after a raise: %v, or another secret", err)
	}
	for range 2 {
		if _, err := Move(t.Context(), from, to, "memory:"); err != nil || secret(to) != want || secret(from) != want {
			t.Errorf("after a move: %v, or another secret", err)
		}
	}
	if _, err := Move(t.Context(), from, used, "memory:"); err != nil || secret(used) != own {
		t.Errorf("a store that has one of its own keeps it: %v", err)
	}
}
