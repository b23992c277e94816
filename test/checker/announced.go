package checker

import (
	"fmt"
	"maps"
	"slices"

	"regent/leadership"
)

// EV checks that every consumer was told of every change of its elections: at least once, for the
// first time in the order of the revisions, unaltered, and of nothing else.
func EV(r Recording) Report {
	truth, report := truthOf(r.History)
	for _, c := range r.Consumers {
		c.After = c.known(truth)
		a := audit{consumer: c, truth: truth, seen: make(map[leadership.EventID]bool), last: make(map[leadership.Election]leadership.Revision)}
		for _, e := range c.Got {
			a.deliver(&report, e)
		}
		a.missing(&report)
	}
	return report
}

// known returns what the consumer knew to begin with. Of an election that was deleted then, that is
// the last deletion before the first event that it got of it or, if there is none, the first
// deletion from there on: it also gets events from before it began.
func (c Consumer) known(t truth) map[leadership.Election]leadership.Revision {
	after := make(map[leadership.Election]leadership.Revision)
	maps.Copy(after, c.After)
	for _, e := range c.Deleted {
		first := leadership.Revision(len(t[e]) + 1)
		if i := slices.IndexFunc(c.Got, func(got leadership.Event) bool { return got.Election == e }); i >= 0 {
			first = c.Got[i].Revision
		}
		for _, event := range t[e] {
			if event.Type == leadership.EventDeleted && (event.Revision < first || after[e] == 0) {
				after[e] = event.Revision
			}
		}
	}
	return after
}

// truth is the events of each election; revision n is at index n-1.
type truth map[leadership.Election][]leadership.Event

// truthOf groups the history by election. A gap is a violation, and what follows it is ignored.
func truthOf(history []leadership.Event) (truth, Report) {
	t, report := make(truth), Report{}
	for _, e := range history {
		events := t[e.Election]
		switch want := leadership.Revision(len(events) + 1); {
		case e.Revision == want:
			t[e.Election] = append(events, e)
		default:
			report.add(Broken, "revision %d of election %q stands where %d should", e.Revision, e.Election, want)
		}
	}
	return t, report
}

// event returns the event of a revision.
func (t truth) event(e leadership.Election, r leadership.Revision) (leadership.Event, bool) {
	if r < 1 || int(r) > len(t[e]) {
		return leadership.Event{}, false
	}
	return t[e][r-1], true
}

// audit goes through what one consumer received.
type audit struct {
	consumer Consumer
	truth    truth
	seen     map[leadership.EventID]bool
	last     map[leadership.Election]leadership.Revision // the greatest that was delivered
}

func (a *audit) deliver(report *Report, got leadership.Event) {
	e, name := got.Election, a.consumer.Name
	event, committed := a.truth.event(e, got.Revision)
	switch {
	case !a.wants(e):
		report.add(Phantom, "%s got revision %d of election %q, which it does not listen to", name, got.Revision, e)
		return
	case !committed:
		report.add(Phantom, "%s got revision %d of election %q, which was never committed: %+v", name, got.Revision, e, got)
		return
	case !same(event, got):
		report.add(Altered, "%s got revision %d of election %q as %+v, and it is %+v", name, got.Revision, e, got, event)
	}
	switch {
	case a.seen[got.ID()] || got.Revision <= a.consumer.After[e]:
		report.Duplicates++
		return
	case got.Revision < a.last[e]:
		report.add(Misordered, "%s got revision %d of election %q for the first time after %d", name, got.Revision, e, a.last[e])
	}
	a.seen[got.ID()] = true
	a.last[e] = max(a.last[e], got.Revision)
}

func (a *audit) wants(e leadership.Election) bool {
	return len(a.consumer.Elections) == 0 || slices.Contains(a.consumer.Elections, e)
}

// missing reports what was not delivered, once for a run of revisions.
func (a *audit) missing(report *Report) {
	for _, e := range slices.Sorted(maps.Keys(a.truth)) {
		if !a.wants(e) {
			continue
		}
		var from leadership.Revision
		events := a.truth[e][min(int(a.consumer.After[e]), len(a.truth[e])):]
		for _, event := range events {
			report.Checked++
			lost := !a.seen[event.ID()] && !(a.consumer.Partial && event.Revision > a.last[e])
			switch {
			case lost && from == 0:
				from = event.Revision
			case !lost && from > 0:
				a.lost(report, e, from, event.Revision-1)
				from = 0
			}
		}
		if from > 0 {
			a.lost(report, e, from, events[len(events)-1].Revision)
		}
	}
}

func (a *audit) lost(report *Report, e leadership.Election, from, to leadership.Revision) {
	which := fmt.Sprintf("revision %d", from)
	if to > from {
		which = fmt.Sprintf("revisions %d to %d", from, to)
	}
	report.add(Lost, "%s never got %s of election %q", a.consumer.Name, which, e)
}

// same compares events, their instants by Equal.
func same(a, b leadership.Event) bool {
	at := a.At.Equal(b.At)
	b.At = a.At
	return at && a == b
}
