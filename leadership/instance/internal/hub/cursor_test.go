package hub_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/store/memory"
)

func TestACursorTravelsAndComesBack(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000006Z", "2026-01-02T03:04:05.1Z"} {
		if c, err := hub.ParseCursor(text); err != nil || c.String() != text || c.IsZero() {
			t.Errorf("%s came back as %v, %v", text, c, err)
		}
	}
	for _, text := range []string{
		"", "now", "17", "2026-01-02", "0001-01-01T00:00:00Z", "2026-01-02T03:04:05.10Z", "2026-01-02T03:04:05+00:00", "2026-01-02T04:04:05+01:00",
	} {
		if c, err := hub.ParseCursor(text); err == nil || !c.IsZero() {
			t.Errorf("%q was taken for the cursor %v", text, c)
		}
	}
}

func FuzzACursorHasOneSpelling(f *testing.F) {
	f.Add("2026-01-02T03:04:05.000000006Z")
	f.Add("9999-12-31T23:59:59.999999999Z")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := hub.ParseCursor(text); err == nil && c.String() != text {
			t.Errorf("%q came back as %q", text, c)
		}
	})
}

// cursorOf is the cursor of an instant.
func cursorOf(t *testing.T, at time.Time) hub.Cursor {
	t.Helper()
	c, err := hub.ParseCursor(at.UTC().Format(time.RFC3339Nano))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// script is a history that was written in advance, by a store in some time zone.
type script []leadership.Event

var zone = time.FixedZone("somewhere", 3600)

func (s script) Events(context.Context, leadership.EventsRequest) ([]leadership.Event, error) {
	return nil, nil
}

func (s script) Since(_ context.Context, at time.Time) (leadership.Recent, error) {
	recent := leadership.Recent{Now: time.Now().In(zone)}
	for _, e := range s {
		if e.At.After(at) {
			recent.Events = append(recent.Events, e)
		}
	}
	slices.SortFunc(recent.Events, func(a, b leadership.Event) int { return a.At.Compare(b.At) })
	return recent, nil
}

func (s script) Get(context.Context, leadership.Election) (leadership.Lease, error) {
	return leadership.Lease{}, leadership.StoreUnavailable
}

func (s script) Expire(context.Context, leadership.Election) (leadership.Lease, error) {
	return leadership.Lease{}, leadership.StoreUnavailable
}

func (s script) Now(context.Context) (time.Time, error) { return time.Now().In(zone), nil }

// skewedHistory has an event every 10 ms from the instant on, for so long, with times that are off
// by up to 50 ms.
func skewedHistory(from time.Time, long time.Duration) script {
	var s script
	for n := range int(long / (10 * time.Millisecond)) {
		off := []int{0, -20, 25, 5, -25, 20, -15}[n%7]
		at := from.Add(time.Duration(10*n+off) * time.Millisecond).In(zone)
		s = append(s, leadership.Event{Election: jobs, Revision: leadership.Revision(n + 1), At: at})
	}
	return s
}

// The clocks of a store's servers differ, so that the times of events need not be in the order of
// their revisions. A cursor can lie anywhere among them.
func TestAFeedIsInOrderWhateverTheTimesSay(t *testing.T) {
	t.Parallel()
	for name, age := range map[string]time.Duration{"where the journal begins": 10 * time.Second, "further back": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				oldest := time.Now().Add(-age)
				history := skewedHistory(oldest.Add(-6*time.Second), 16*time.Second)
				w := newCluster(t, memory.Config{})
				h := runs(t, history, true)
				for n := range 20 {
					at := oldest.Add(5*time.Second - time.Duration(n)*263*time.Millisecond)
					f := w.follows(h, "", cursorOf(t, at))
					if err := complete(history, f.items(), at); err != nil {
						t.Errorf("from %v on: %v", at, err)
					}
					if c := f.feed.Cursor(); cursorOf(t, parsed(t, c)) != c {
						t.Errorf("the cursor %v is another one when it comes back", c)
					}
				}
			})
		})
	}
}

func parsed(t *testing.T, c hub.Cursor) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, c.String())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// complete returns an error unless the items are in order, without a gap, and have all events after
// the instant.
func complete(history script, items []hub.Item, after time.Time) error {
	told := make(map[leadership.Revision]bool)
	for n, i := range items {
		if n > 0 && i.Event.Revision != items[n-1].Event.Revision+1 {
			return fmt.Errorf("revision %d came after %d", i.Event.Revision, items[n-1].Event.Revision)
		}
		told[i.Event.Revision] = true
	}
	for _, e := range history {
		if e.At.After(after) && !told[e.Revision] {
			return fmt.Errorf("revision %d is missing", e.Revision)
		}
	}
	return nil
}
