package file_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/file"
)

// aged is a folder whose clock is moved by hand.
type aged struct {
	t      *testing.T
	path   string
	uptime time.Duration
	config file.Config // but for the clock and the history
	*file.Store
}

func newAged(t *testing.T) *aged {
	t.Helper()
	f := &aged{t: t, path: filepath.Join(t.TempDir(), "leases"), uptime: time.Hour}
	f.reopen(rule.MinHistory)
	return f
}

// reopen opens the folder anew, in the same boot.
func (f *aged) reopen(history time.Duration) {
	f.t.Helper()
	if f.Store != nil {
		f.Close()
	}
	clock := file.Clock{BootID: "boot", SinceBoot: func() time.Duration { return f.uptime }}
	f.config.Clock, f.config.History = clock, history
	s, err := file.Open(f.path, f.config)
	require.NoError(f.t, err)
	f.t.Cleanup(func() { s.Close() })
	f.Store = s
}

// change makes so many changes to an election, each with one event.
func (f *aged) change(e leadership.Election, times int) {
	f.t.Helper()
	for range times {
		_, err := f.Update(f.t.Context(), e, rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) {
			lock := s.Record.Policy.Config.LockDelay + time.Millisecond
			return rule.Apply(s, leadership.Configure{Config: leadership.Config{LockDelay: lock}})
		})
		require.NoError(f.t, err)
		f.uptime += time.Millisecond
	}
}

// keys expects so many events: in the elections, waiting to be announced, and in the pages.
func (f *aged) keys(want int) {
	f.t.Helper()
	if events, waiting, alive := f.Kept(); events != want || waiting != want || alive != want {
		f.t.Errorf("%d events, %d that wait, and %d in pages; want %d of each", events, waiting, alive, want)
	}
}

func (f *aged) now() time.Time {
	f.t.Helper()
	snap, err := f.Get(f.t.Context(), "jobs")
	require.NoError(f.t, err)
	return snap.Now
}

func TestAChangeDeletesAHundredOldEventsAtMostOfItsOwnElectionAndAllTheirTraces(t *testing.T) {
	t.Parallel()
	f := newAged(t)
	const old = 2*file.MaxPruned + 50
	f.change("jobs", old)
	f.change("other", 3)
	f.uptime += rule.MinHistory + time.Minute
	for _, left := range []int{old - file.MaxPruned, old - 2*file.MaxPruned, 0, 0} {
		f.change("jobs", 1)
		events, err := f.Events(t.Context(), "jobs", 0, 2*old)
		require.NoError(t, err)
		kept := 0
		for _, e := range events {
			if f.now().Sub(e.At) > rule.MinHistory {
				kept++
			}
		}
		if kept != left {
			t.Errorf("%d old events are left, want %d", kept, left)
		}
	}
	f.keys(4 + 3) // those of the other election stay for as long as nothing happens to it
}

func TestAnEventIsKeptUntilItIsOlderThanHistoryIsKept(t *testing.T) {
	t.Parallel()
	f := newAged(t)
	f.change("jobs", 1)
	f.uptime += rule.MinHistory - time.Millisecond // just as old as history is kept
	f.change("jobs", 1)
	f.keys(2)
	f.change("jobs", 1)
	f.keys(2)
}

func TestAfterHistoryWasMadeLongerWhatWasDeletedBeforeIsMissed(t *testing.T) {
	t.Parallel()
	f := newAged(t)
	f.change("jobs", 3)
	f.uptime += 2 * rule.MinHistory
	f.change("jobs", 1)
	f.keys(1)
	f.reopen(rule.DefaultHistory)
	if recent, err := f.Since(t.Context(), f.now().Add(-3*rule.MinHistory), 10); !errors.Is(err, leadership.HistoryCompacted) {
		t.Errorf("since before what was deleted: got %v, %v; want %s", recent.Events, err, leadership.HistoryCompacted)
	}
	if recent, err := f.Since(t.Context(), f.now().Add(-2*rule.MinHistory), 10); err != nil || len(recent.Events) != 1 {
		t.Errorf("since after it: got %v, %v; want one event", recent.Events, err)
	}
	_, err := service.New(f).Events(t.Context(), leadership.EventsRequest{Election: "jobs"})
	if !errors.Is(err, leadership.HistoryCompacted) {
		t.Errorf("the history of the election: got %v, want %s", err, leadership.HistoryCompacted)
	}
}

func TestWhatWasDeletedBeforeACheckpointIsMissedAfterIt(t *testing.T) {
	t.Parallel()
	f := newAged(t)
	const onePage = 256
	f.change("jobs", onePage)
	f.uptime += 2 * rule.MinHistory
	f.change("jobs", onePage/file.MaxPruned+1) // all of the page, and no more
	f.keys(onePage/file.MaxPruned + 1)
	f.config.Checkpoint = 1
	f.reopen(rule.MinHistory)
	require.NoError(t, f.Checkpointed())
	f.config.Checkpoint = 1 << 30
	f.reopen(rule.DefaultHistory)
	if recent, err := f.Since(t.Context(), f.now().Add(-3*rule.MinHistory), 10); !errors.Is(err, leadership.HistoryCompacted) {
		t.Errorf("since before what was deleted: got %v, %v; want %s", recent.Events, err, leadership.HistoryCompacted)
	}
	f.keys(onePage/file.MaxPruned + 1)
}

func TestAForgottenEventLeavesItsPageAndTheNextSnapshot(t *testing.T) {
	t.Parallel()
	f := newAged(t)
	const onePage = 256
	for _, e := range []leadership.Election{"a", "b"} { // two pages of which something stays
		f.change(e, 1)
		f.change("jobs", onePage-1)
	}
	f.change("jobs", onePage) // and one of which nothing does
	full := f.PageBytes()
	f.reopen(rule.MinHistory)
	if again := f.PageBytes(); again > full+full/10 {
		t.Errorf("opened again, %d events have %d bytes, and had %d", 3*onePage, again, full)
	}
	f.uptime += 2 * rule.MinHistory
	f.change("jobs", 3*onePage/file.MaxPruned+1+4) // then each page is looked at once more
	if left := f.PageBytes(); full > 3*onePage*15 || left > full/3 {
		t.Errorf("%d events had %d bytes, and %d when they were forgotten", 3*onePage, full, left)
	}
	f.keys(2 + 3*onePage/file.MaxPruned + 1 + 4)
	_, err := f.Update(t.Context(), "quiet", rule.Expect{}, func(s rule.Snapshot) (rule.Change, error) { // which has no event at all
		s.Record.Standing.Unknown = `{"x":1}`
		return rule.Change{Record: s.Record, Quiet: true}, nil
	})
	f.CheckpointNow()
	require.NoError(t, errors.Join(err, f.Checkpointed()))
	f.reopen(rule.MinHistory)
	f.keys(2 + 3*onePage/file.MaxPruned + 1 + 4)
}

// expect expects the revisions of events.
func expect(t *testing.T, what string, events []leadership.Event, err error, revisions ...leadership.Revision) {
	t.Helper()
	var got []leadership.Revision
	for _, e := range events {
		got = append(got, e.Revision)
	}
	if err != nil || !slices.Equal(got, revisions) {
		t.Errorf("%s: got revisions %v, %v; want %v", what, got, err, revisions)
	}
}

// Events are read from pages that are compressed, also after a checkpoint.
func TestEachEventOfSeveralPagesIsRead(t *testing.T) {
	t.Parallel()
	f := newAged(t)
	const many = 600
	f.change("jobs", many)
	middle := f.now()
	f.change("other", many)
	require.NoError(t, f.MarkAnnounced(t.Context(), []leadership.EventID{{Election: "jobs", Revision: 2}}))
	var all []leadership.Revision
	for i := range leadership.Revision(many) {
		all = append(all, i+1)
	}
	for range 2 {
		for range 2 {
			events, err := f.Events(t.Context(), "jobs", 0, 2*many)
			expect(t, "all", events, err, all...)
		}
		events, err := f.Unannounced(t.Context(), "", 3)
		expect(t, "outbox", events, err, 1, 3, 4)
		events, err = f.Between(middle.Add(-2*time.Millisecond), middle.Add(time.Millisecond))
		expect(t, "those of 3 ms", events, err, many, 1, 2)
		f.CheckpointNow()
		require.NoError(t, f.Checkpointed())
		f.reopen(rule.MinHistory)
	}
}

func TestSinceWaitsForACommitUnderWay(t *testing.T) {
	t.Parallel()
	f := newAged(t)
	f.change("jobs", 1)
	start := f.now().Add(-time.Minute)
	first := f.Hold()
	second := make(chan func(), 1)
	go func() { second <- f.Hold() }()
	queued(t, f.Store, 1)
	impatient, giveUp := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() { _, err := f.Since(impatient, start, 10); answer <- err }()
	queued(t, f.Store, 2)
	first()
	release := <-second // both are taken now, and neither is done
	giveUp()
	err := <-answer
	if !errors.Is(err, leadership.StoreUnavailable) || !errors.Is(err, context.Canceled) || errors.Is(err, leadership.OutcomeUnknown) {
		t.Errorf("while a transaction is under way: got %v, want %s", err, leadership.StoreUnavailable)
	}
	release()
	if recent, err := f.Since(t.Context(), start, 10); err != nil || len(recent.Events) != 1 {
		t.Errorf("then: got %v, %v; want one event", recent.Events, err)
	}
}

func TestWhatWasCommittedWhileItIsReadWaitsForTheNextTime(t *testing.T) {
	t.Parallel()
	f := newAged(t)
	start := f.now()
	f.change("jobs", 3) // at the start, and 1 ms and 2 ms later
	for _, c := range []struct {
		after, last time.Duration
		want        []leadership.Revision
	}{
		{-1, 2 * time.Millisecond, []leadership.Revision{1, 2, 3}},
		{0, time.Millisecond, []leadership.Revision{2}},
		{-1, time.Millisecond - 1, []leadership.Revision{1}},
	} {
		events, err := f.Between(start.Add(c.after), start.Add(c.last))
		expect(t, fmt.Sprintf("after %v and not after %v", c.after, c.last), events, err, c.want...)
	}
}
