// Package history has the rules, shared by all stores, of how long events are kept.
package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// Span is how long a store keeps an event.
type Span time.Duration

// Of returns the span that a store is configured with; 0 stands for rule.DefaultHistory. Less
// than rule.MinHistory or more than rule.MaxHistory is an error with the code InvalidArgument.
func Of(configured time.Duration) (Span, error) {
	span := cmp.Or(configured, rule.DefaultHistory)
	if span < rule.MinHistory {
		return 0, &leadership.Error{Code: leadership.InvalidArgument, Field: "history", Detail: fmt.Sprintf(
			"history has to be kept for %s at least, and %s is less", rule.MinHistory, span)}
	}
	if span > rule.MaxHistory {
		return 0, &leadership.Error{Code: leadership.InvalidArgument, Field: "history", Detail: fmt.Sprintf(
			"history can be kept for %s at most, which is 100 years, and %s is more", rule.MaxHistory, span)}
	}
	return Span(span), nil
}

// Slack is longer than the time between a transaction's read of the store's clock, or its request,
// and its commit. No store lets a commit take that long.
const Slack = 5 * time.Minute

// Due returns when an event may be deleted whose transaction read the store's clock at the given
// time. Its commit may have been up to Slack later.
func (s Span) Due(read time.Time) time.Time { return read.Add(time.Duration(s) + Slack) }

// Over reports whether an event of the given time need no longer be kept.
func (s Span) Over(at, now time.Time) bool { return at.Add(time.Duration(s)).Before(now) }

// Since returns the result of Store.Since from the events that were found after the instant, in any
// order. A store that has found more than limit need not look for more.
func (s Span) Since(after, now time.Time, found []leadership.Event, limit int) (rule.Recent, error) {
	if s.Over(after, now) {
		return rule.Recent{}, Compacted(after, now.Add(-time.Duration(s)))
	}
	if len(found) > limit {
		return rule.Recent{}, refuse("there are more than %d events after %s", limit, instant(after))
	}
	slices.SortFunc(found, func(a, b leadership.Event) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Election, b.Election), cmp.Compare(a.Revision, b.Revision))
	})
	return rule.Recent{Events: found, Now: now}, nil
}

// Compacted returns the error for a read of the history after an instant before from: the history
// is complete only from there on.
func Compacted(after, from time.Time) error {
	return refuse("the events of all elections are kept from %s on, and %s is before that", instant(from), instant(after))
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func refuse(format string, args ...any) error {
	return &leadership.Error{Code: leadership.HistoryCompacted, Detail: fmt.Sprintf(format, args...) +
		"; read the elections as they are now, and go on from there"}
}
