package hub_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/rule"
	"regent/store/memory"
)

var fromNow hub.Cursor

func TestAnElectionThatTheFeedHasNotHeardOfIsLookedUpOnce(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		w.change(jobs, 2)
		time.Sleep(time.Hour)
		f := w.follows(h, "", fromNow)
		h.reads()
		time.Sleep(time.Second)
		h.Publish(w.change(jobs, 1)...)
		f.wants("the first that is heard", "jobs 3")
		h.Publish(w.change(jobs, 1)...)
		f.wants("and the next", "jobs 3", "jobs 4")
		time.Sleep(30 * time.Second)
		h.wants(t, 0, 1, "two events of one election")
	})
}

func TestFeedFindsEventsThatItDidNotHear(t *testing.T) {
	for name, find := range map[string]func(*cluster, *instance){
		"with the next event of that election": func(w *cluster, h *instance) { h.Publish(w.change(jobs, 1)...) },
		"when the hub is live anew":            func(_ *cluster, h *instance) { h.SetLive(true) },
		"when the mark moves on":               func(w *cluster, h *instance) { h.Publish(w.change("other", 1)...); time.Sleep(time.Minute) },
		"by a poll":                            func(_ *cluster, h *instance) { h.SetLive(false); time.Sleep(poll) },
		"within half an hour":                  func(*cluster, *instance) { time.Sleep(30 * time.Minute) },
		"when another feed looks further back": func(w *cluster, h *instance) { w.follows(h, "", cursorOf(w.t, time.Now().Add(-time.Hour))) },
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, w *cluster) {
				h := w.hub(true)
				f := w.follows(h, "jobs", fromNow)
				h.Publish(w.change(jobs, 1)...)
				time.Sleep(2 * time.Minute)
				w.change(jobs, 1)
				f.wants("before the event is announced", "jobs 1")
				find(w, h)
				if got := f.items(); len(got) < 2 || got[1].Event.Revision != 2 {
					t.Errorf("got %v, want the lost event", got)
				}
			})
		})
	}
}

// The cursor is of another instance, whose mark is the later one.
func TestAFeedThatLooksBackToAfterTheMarkHidesNothingFromOthers(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		h.Shrink(2)
		f := w.follows(h, "", fromNow)
		h.Publish(w.change(jobs, 1)...)
		f.wants("before", "jobs 1")
		w.change(jobs, 1) // which the instance does not hear of
		time.Sleep(20 * time.Second)
		later := cursorOf(t, time.Now().Add(-time.Second))
		for range 3 { // so that the window begins after that
			h.Publish(w.change("other", 1)...)
			synctest.Wait()
		}
		w.change(jobs, 1)
		w.follows(h, "", later)
		f.wants("after another has looked back", "jobs 1", "other 1", "other 2", "other 3", "jobs 2", "jobs 3")
	})
}

func TestGapsOfManyElectionsAreFoundWithoutBeingRememberedOneByOne(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		f := w.follows(h, "", fromNow)
		h.set(away, nil)
		for n := range 2000 {
			h.Publish(w.change(leadership.Election(fmt.Sprint("e", n)), 2)[1]) // not the first
		}
		synctest.Wait()
		if gaps := h.Gaps(); gaps > 1000 {
			t.Errorf("%d gaps are remembered", gaps)
		}
		h.set(nil, nil)
		time.Sleep(time.Minute)
		assert.Len(t, f.items(), 4000, "events")
	})
}

// resumes checks that a feed from the cursor tells all that is not among what was seen before, and
// then what comes.
func (w *cluster) resumes(h *instance, from hub.Cursor, seen []hub.Item) {
	w.t.Helper()
	f := w.follows(h, "", from)
	s := newSight()
	for _, i := range seen {
		s.see(i.Event)
	}
	got := f.items()
	for _, i := range got {
		assert.NoError(w.t, s.see(i.Event), "resuming from %v", from)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for e, events := range w.log {
		if last := events[len(events)-1].Revision; s[e] != last {
			w.t.Errorf("resuming from %v: got to revision %d of %s, want %d: %v", from, s[e], e, last, got)
		}
	}
	f.feed.Close()
}

// sight is the newest revision that a reader has seen of each election.
type sight map[leadership.Election]leadership.Revision

func newSight() sight { return sight{} }

// see takes an event if it is new. The error says that an event before it is missing.
func (s sight) see(e leadership.Event) error {
	seen, ok := s[e.Election]
	if ok && e.Revision > seen+1 {
		return fmt.Errorf("revision %d of %s came after %d", e.Revision, e.Election, seen)
	}
	s[e.Election] = max(seen, e.Revision)
	return nil
}

func TestACursorThatIsTooOldIsToldAsSuch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t, memory.Config{History: rule.MinHistory})
		f := w.follows(w.hub(true), "", fromNow)
		old := f.feed.Cursor()
		time.Sleep(rule.MinHistory)
		young := f.feed.Cursor()
		w.change(jobs, 1)
		time.Sleep(rule.MinHistory / 3)
		h := w.hub(true)
		w.follows(h, "", fromNow)
		h.reads()
		for range 10 {
			_, err := h.Feed(t.Context(), leadership.Selection{}, old)
			assert.ErrorIs(t, err, leadership.HistoryCompacted)
		}
		h.wants(t, 0, 1, "ten times a cursor that is too old")
		w.follows(h, "", young).wants("from a cursor that is not", "jobs 1")
	})
}

func TestSlowFeedIsEndedAndDelaysNoOther(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		h.Shrink(50)
		slow, err := h.Feed(t.Context(), leadership.Selection{}, fromNow)
		require.NoError(t, err)
		defer slow.Close()
		quick := w.follows(h, "", fromNow)
		before := slow.Cursor()
		for range 60 {
			h.Publish(w.change(jobs, 1)...)
			synctest.Wait()
		}
		if got := quick.items(); len(got) != 60 {
			t.Errorf("the quick one got %d events, want 60", len(got))
		}
		if _, err := h.Feed(t.Context(), leadership.Selection{}, before); err != nil { // puts the dropped events before the present ones
			t.Fatal(err)
		}
		for range 2 {
			if items, err := slow.Next(t.Context()); !errors.Is(err, hub.ErrSlow) {
				t.Fatalf("the slow one got %d events and %v, want %v", len(items), err, hub.ErrSlow)
			}
		}
		if got := slow.Cursor(); got != before {
			t.Errorf("the slow one resumes from %v, want %v", got, before)
		}
		w.resumes(h, slow.Cursor(), nil)
	})
}

func TestAFeedForgetsElectionsOfWhichItHasNoEventAnyMore(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		h.Shrink(20)
		f := w.follows(h, "", fromNow)
		var first []leadership.Event
		var want []string
		for n := range 100 {
			event := w.change(leadership.Election(fmt.Sprint("e", n)), 1)
			first, want = append(first, event...), append(want, fmt.Sprintf("e%d 1", n))
			h.Publish(event...)
			time.Sleep(5 * time.Second)
			if known := h.Known(); known > 32 { // and 12 more are heard between two looks
				t.Fatalf("%d elections are known, want 20 at most after a look", known)
			}
		}
		h.reads()
		h.Publish(first...)
		f.wants("when all events come again", want...)
		h.Publish(w.change("e0", 1)...)
		f.wants("when an election that was forgotten changes", append(want, "e0 2")...)
		h.wants(t, 0, 1, "a change of an election that was forgotten")
	})
}

func TestJournalWithoutReadersCostsNothing(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(false)
		f := w.follows(h, "", fromNow)
		_, err := h.Feed(t.Context(), leadership.Selection{}, cursorOf(t, time.Unix(0, 0)))
		assert.ErrorIs(t, err, leadership.HistoryCompacted)
		f.feed.Close()
		synctest.Wait()
		h.reads()
		h.Publish(w.change(jobs, 5)...)
		time.Sleep(24 * time.Hour)
		h.wants(t, 0, 0, "a day without feeds")
	})
}

func TestAFeedWithoutNewsCostsALookInHalfAnHour(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		for range 100 {
			w.follows(h, "", fromNow)
		}
		h.wants(t, 0, 1, "100 feeds")
		time.Sleep(29 * time.Minute)
		h.wants(t, 0, 0, "29 minutes without news")
		time.Sleep(24 * time.Hour)
		h.wants(t, 0, 48, "a day")
		h.Publish(w.change(jobs, 1)...)
		time.Sleep(29 * time.Minute)
		h.wants(t, 0, 1, "one event")
	})
}

func TestEventsThatAreInTheHistoryOnlyLaterComeToAFeed(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		f := w.follows(h, "", fromNow)
		h.Publish(w.change(jobs, 1)...)
		for _, r := range []leadership.Revision{4, 3} {
			h.Publish(leadership.Event{Election: jobs, Revision: r, At: time.Now()})
		}
		time.Sleep(time.Second)
		f.wants("while they are not there", "jobs 1")
		w.change(jobs, 2) // and they are not published
		time.Sleep(2 * time.Second)
		f.wants("when two are", "jobs 1", "jobs 2", "jobs 3")
		w.change(jobs, 1)
		time.Sleep(5 * time.Second)
		f.wants("when all are", "jobs 1", "jobs 2", "jobs 3", "jobs 4")
	})
}

func TestFeedThatGivesUpResumingLeavesTheLookToOthers(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		cursor := w.follows(w.hub(true), "", fromNow).feed.Cursor()
		w.change(jobs, 2)
		time.Sleep(time.Minute)
		h := w.hub(true)
		w.follows(h, "", fromNow)
		h.set(nil, make(chan struct{}))
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := h.Feed(ctx, leadership.Selection{}, cursor)
			gone <- err
		}()
		synctest.Wait()
		go func() {
			_, err := h.Feed(ctx, leadership.Selection{}, cursor)
			gone <- err
		}()
		synctest.Wait()
		h.set(nil, nil)
		cancel()
		for range 2 {
			assert.ErrorIs(t, <-gone, context.Canceled, "who gave up")
		}
		w.follows(h, "", cursor).wants("who came after", "jobs 1", "jobs 2")
	})
}

func TestTooMuchAtOnceEndsFeedsAndNewOnesBegin(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		f := w.follows(h, "", fromNow)
		for range leadership.MaxRecent + 1 {
			w.change(jobs, 1)
		}
		h.SetLive(true)
		assert.ErrorIs(t, f.ended(), leadership.HistoryCompacted, "the feed")
		if cursor := f.feed.Cursor(); cursor.IsZero() {
			t.Error("a feed that has ended has no cursor")
		}
		_, err := h.Feed(t.Context(), leadership.Selection{}, f.feed.Cursor())
		assert.ErrorIs(t, err, leadership.HistoryCompacted, "its cursor")
		time.Sleep(time.Minute)
		again := w.follows(h, "", fromNow)
		f.feed.Close()
		time.Sleep(time.Second)
		h.Publish(w.change(jobs, 1)...)
		again.wants("who begins anew", fmt.Sprint("jobs ", leadership.MaxRecent+2))
	})
}

func TestClosingTheHubEndsAllFeeds(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h, stuck, still := w.hub(true), w.hub(true), &instance{newHub(t, hub.Config{Store: w.service}), nil}
		draining := errors.New("draining")
		ended := make(chan error, 10)
		f := w.follows(h, "", fromNow)
		late, err := h.Feed(t.Context(), leadership.Selection{}, fromNow)
		require.NoError(t, err)
		h.Publish(w.change(jobs, 1)...)
		f.wants("before", "jobs 1")
		stuck.set(nil, make(chan struct{}))
		for _, i := range []*instance{stuck, stuck, still} { // waiting for the store, and for Run
			go func() {
				_, err := i.Feed(context.Background(), leadership.Selection{}, fromNow)
				ended <- err
			}()
		}
		synctest.Wait()
		for _, i := range []*instance{h, stuck, still} {
			i.Close(draining)
		}
		_, err = h.Feed(t.Context(), leadership.Selection{}, fromNow)
		ended <- err
		_, err = late.Next(t.Context()) // though there is an event for it
		ended <- err
		ended <- f.ended()
		for range 6 {
			assert.ErrorIs(t, <-ended, draining)
		}
		assert.False(t, f.feed.Cursor().IsZero(), "a feed that was ended has no cursor")
	})
}

func TestALookThatFailsIsMadeAgain(t *testing.T) {
	inCluster(t, func(t *testing.T, w *cluster) {
		h := w.hub(true)
		f := w.follows(h, "", fromNow)
		w.change(jobs, 1)
		h.set(away, nil)
		h.SetLive(true)
		time.Sleep(3 * poll)
		f.wants("while the store is away")
		if _, since, _ := h.reads(); since > 5 {
			t.Errorf("the store was asked %d times in three polls", since)
		}
		h.set(nil, nil)
		time.Sleep(poll)
		f.wants("once it is there", "jobs 1")
	})
}
