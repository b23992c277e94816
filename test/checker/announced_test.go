package checker_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership"
	"regent/test/checker"
)

// begin is an instant of the store's clock.
var begin = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

// history is what n terms of one second leave: acquired, released, and so on.
func history(e leadership.Election, n int) (events []leadership.Event) {
	for i := range 2 * n {
		event := leadership.Event{
			Election: e, Revision: leadership.Revision(i + 1), Type: leadership.EventAcquired, At: begin.Add(time.Duration(i) * time.Second),
			LeaderID: "ann", Token: leadership.Token(i/2 + 1),
		}
		if i%2 == 1 {
			event.Type, event.LeaderID, event.PreviousLeaderID = leadership.EventReleased, "", "ann"
		}
		events = append(events, event)
	}
	return events
}

// told is a consumer that got these revisions of planner.
func told(revisions ...int) checker.Consumer {
	events := history("planner", 3)
	c := checker.Consumer{Name: "bob"}
	for _, r := range revisions {
		c.Got = append(c.Got, events[r-1])
	}
	return c
}

func TestWrongAnnouncementsAreFound(t *testing.T) {
	t.Parallel()
	change := func(c checker.Consumer, do func(*checker.Consumer)) checker.Consumer { do(&c); return c }
	for _, c := range []struct {
		name     string
		consumer checker.Consumer
		want     []checker.Kind
		twice    int // duplicates
	}{
		{"all, in order", told(1, 2, 3, 4, 5, 6), nil, 0},
		{"some twice, and late", told(1, 2, 1, 3, 4, 4, 2, 5, 6, 6), nil, 4},
		{"nothing", told(), []checker.Kind{checker.Lost}, 0},
		{"not the first", told(2, 3, 4, 5, 6), []checker.Kind{checker.Lost}, 0},
		{"not the last", told(1, 2, 3, 4, 5), []checker.Kind{checker.Lost}, 0},
		{"two gaps", told(1, 3, 4, 6), []checker.Kind{checker.Lost, checker.Lost}, 0},
		{"two the wrong way round", told(1, 3, 2, 4, 5, 6), []checker.Kind{checker.Misordered}, 0},
		{"one too soon", told(1, 4, 2, 3, 5, 6), []checker.Kind{checker.Misordered, checker.Misordered}, 0},
		{"in order only when they came again", told(1, 3, 2, 3, 4, 5, 6), []checker.Kind{checker.Misordered}, 1},
		{"from what it knew", change(told(4, 5, 6), func(c *checker.Consumer) {
			c.After = map[leadership.Election]leadership.Revision{"planner": 3}
		}), nil, 0},
		{"what it knew, too", change(told(2, 3, 4, 5, 6), func(c *checker.Consumer) {
			c.After = map[leadership.Election]leadership.Revision{"planner": 3}
		}), nil, 2},
		{"it knew more than there is", change(told(), func(c *checker.Consumer) {
			c.After = map[leadership.Election]leadership.Revision{"planner": 9}
		}), nil, 0},
		{"it stopped", change(told(1, 2, 3), func(c *checker.Consumer) { c.Partial = true }), nil, 0},
		{"it stopped, and had missed one", change(told(1, 3), func(c *checker.Consumer) { c.Partial = true }), []checker.Kind{checker.Lost}, 0},
		{"another token", change(told(1, 2, 3, 4, 5, 6), func(c *checker.Consumer) { c.Got[2].Token++ }), []checker.Kind{checker.Altered}, 0},
		{"another instant", change(told(1, 2, 3, 4, 5, 6), func(c *checker.Consumer) { c.Got[2].At = begin }), []checker.Kind{checker.Altered}, 0},
		{"the same instant elsewhere", change(told(1, 2, 3, 4, 5, 6), func(c *checker.Consumer) {
			c.Got[2].At = c.Got[2].At.In(time.FixedZone("", 3600))
		}), nil, 0},
		{"one too many", change(told(1, 2, 3, 4, 5, 6), func(c *checker.Consumer) {
			c.Got = append(c.Got, leadership.Event{Election: "planner", Revision: 7})
		}), []checker.Kind{checker.Phantom}, 0},
		{"of an election that there is not", change(told(1, 2, 3, 4, 5, 6), func(c *checker.Consumer) {
			c.Got = append(c.Got, leadership.Event{Election: "scribe", Revision: 1})
		}), []checker.Kind{checker.Phantom}, 0},
		{"revision 0", change(told(1, 2, 3, 4, 5, 6), func(c *checker.Consumer) {
			c.Got = append(c.Got, leadership.Event{Election: "planner"})
		}), []checker.Kind{checker.Phantom}, 0},
		{"of another election", change(told(1), func(c *checker.Consumer) { c.Elections = []leadership.Election{"scribe"} }), []checker.Kind{checker.Phantom}, 0},
		{"nothing, and it wants nothing", change(told(), func(c *checker.Consumer) { c.Elections = []leadership.Election{"scribe"} }), nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			report := checker.EV(checker.Recording{History: history("planner", 3), Consumers: []checker.Consumer{c.consumer}})
			if diff := cmp.Diff(c.want, kinds(report)); diff != "" {
				t.Errorf("violations (-want +got):\n%s%v", diff, report.Err())
			}
			if report.Duplicates != c.twice {
				t.Errorf("%d duplicates, want %d", report.Duplicates, c.twice)
			}
		})
	}
}

func kinds(r checker.Report) (kinds []checker.Kind) {
	for _, v := range r.Violations {
		kinds = append(kinds, v.Kind)
	}
	return kinds
}

func TestConsumersAndElectionsAreCheckedSeparately(t *testing.T) {
	t.Parallel()
	all := slices.Concat(history("planner", 3), history("scribe", 2))
	report := checker.EV(checker.Recording{History: all, Consumers: []checker.Consumer{
		{Name: "bob", Got: slices.Concat(history("scribe", 2), history("planner", 3))},
		{Name: "cy", Got: history("planner", 3)},
	}})
	if diff := cmp.Diff([]checker.Kind{checker.Lost}, kinds(report)); diff != "" || report.Checked != 20 {
		t.Errorf("%d checked, %v", report.Checked, report.Err())
	}
}

func TestHistoryWithAGapIsBroken(t *testing.T) {
	t.Parallel()
	for _, breakIt := range []func([]leadership.Event) []leadership.Event{
		func(h []leadership.Event) []leadership.Event { return h[1:] },
		func(h []leadership.Event) []leadership.Event { return slices.Delete(h, 2, 3) },
		func(h []leadership.Event) []leadership.Event { return slices.Insert(h, 2, h[1]) },
	} {
		wrongCase := breakIt(history("planner", 3))
		if got := kinds(checker.EV(checker.Recording{History: wrongCase})); !slices.Contains(got, checker.Broken) {
			t.Errorf("EV of %+v: %v", wrongCase, got)
		}
		if got := kinds(checker.BS(checker.Recording{History: wrongCase}, 0)); !slices.Contains(got, checker.Broken) {
			t.Errorf("BS of %+v: %v", wrongCase, got)
		}
	}
}

func TestAConsumerThatWasToldOfNoDeletedElectionHearsOfItFromThenOn(t *testing.T) {
	t.Parallel()
	events := history("planner", 3)
	events[1].Type, events[3].Type = leadership.EventDeleted, leadership.EventDeleted
	for from, want := range map[int]int{1: 0, 2: 0, 3: 1, 4: 0} {
		c := checker.Consumer{Deleted: []leadership.Election{"planner"}, Got: events[from:]}
		if report := checker.EV(checker.Recording{History: events, Consumers: []checker.Consumer{c}}); len(report.Violations) != want {
			t.Errorf("from revision %d on: %v, want %d violations", from+1, report.Err(), want)
		}
	}
	events = history("planner", 3)
	events[2].Type = leadership.EventDeleted
	early := checker.Consumer{Deleted: []leadership.Election{"planner"}, Got: events[1:]} // also what was there before
	if report := checker.EV(checker.Recording{History: events, Consumers: []checker.Consumer{early}}); len(report.Violations) > 0 {
		t.Errorf("from before the deletion on: %v", report.Err())
	}
}
