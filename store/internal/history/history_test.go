package history

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/leadership/rule"
)

var day = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

func TestHistoryIsKeptForAnHourTo100YearsAndAMonthUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	for configured, want := range map[time.Duration]time.Duration{
		0:                   rule.DefaultHistory,
		rule.MinHistory:     rule.MinHistory,
		90 * 24 * time.Hour: 90 * 24 * time.Hour,
		rule.MaxHistory:     rule.MaxHistory,
		rule.MaxHistory + 1: 0,
		math.MaxInt64:       0,
		rule.MinHistory - 1: 0,
		1:                   0,
		-time.Hour:          0,
	} {
		got, err := Of(configured)
		var refused *leadership.Error
		if time.Duration(got) != want || (want == 0) != (errors.As(err, &refused) && refused.Code == leadership.InvalidArgument) {
			t.Errorf("configured %v: got %v, %v; want %v", configured, time.Duration(got), err, want)
		}
	}
}

func TestEventsAreOrderedByTimeThenElectionThenRevision(t *testing.T) {
	t.Parallel()
	event := func(minute int, e leadership.Election, r leadership.Revision) leadership.Event {
		return leadership.Event{At: day.Add(time.Duration(minute) * time.Minute), Election: e, Revision: r}
	}
	want := []leadership.Event{event(0, "z", 3), event(1, "a", 30), event(1, "a-b", 9), event(1, "b", 7), event(1, "b", 12), event(2, "a", 1)}
	found := []leadership.Event{want[5], want[4], want[2], want[3], want[0], want[1]}
	recent, err := Span(time.Hour).Since(day.Add(-1), day.Add(time.Hour-1), found, len(found))
	if diff := cmp.Diff(rule.Recent{Events: want, Now: day.Add(time.Hour - 1)}, recent); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestHistoryIsCompleteFromTheInstantThatTheRefusalNames(t *testing.T) {
	t.Parallel()
	const kept = Span(time.Hour)
	now := day.Add(time.Hour)
	_, err := kept.Since(day.Add(-1), now, nil, 1)
	const want = "HISTORY_COMPACTED: the events of all elections are kept from 2026-01-02T00:00:00Z on, and 2026-01-01T23:59:59.999999999Z is before that; " +
		"read the elections as they are now, and go on from there"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, err := kept.Since(day, now, nil, 1); err != nil {
		t.Errorf("from that instant on: %v", err)
	}
}

func TestAnEventIsNotDueBeforeItIsOlderThanHistoryIsKept(t *testing.T) {
	t.Parallel()
	const kept = Span(time.Hour)
	for _, took := range []time.Duration{0, time.Minute, Slack} {
		committed := day.Add(took)
		if due := kept.Due(day); due.Before(committed.Add(time.Duration(kept))) {
			t.Errorf("read at %v and committed at %v, it is due at %v", day, committed, due)
		}
	}
}
