package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

// An instance hears of the renewals of a leader elsewhere until the leader and the other instance
// die together.
func TestNewsOfRenewalsElsewhereSaveAllLooksUntilTheyStop(t *testing.T) {
	for _, lease := range []time.Duration{3 * time.Second, 10 * time.Second, 30 * time.Second, 5 * time.Minute} {
		there, here := newView(true), newView(true)
		here.Watch(jobs)
		waiting := here.Wait(jobs, nil)
		l := held(1, start, lease)
		there.Learn(&l, view.Committed, start, start)
		here.Follow(l, start)
		here.Learn(&l, view.Read, start, start)
		beat := max(min(15*time.Second, lease/2), time.Second)
		died := start + time.Hour
		renewed, told := start, start
		for now := start; now < died; now += 100 * time.Millisecond {
			if task, _, ok := here.Next(now); ok {
				t.Fatalf("a lease of %v: after %v the view wants a look: %+v", lease, now-start, task)
			}
			if waiting.Open() <= now {
				t.Fatalf("a lease of %v: after %v the line asks", lease, now-start)
			}
			if now >= renewed+lease/3 {
				renewed = now
				there.Learn(new(held(1, now, lease)), view.Committed, now, now)
			}
			if now >= told+beat {
				told = now
				for _, r := range there.RenewedHere(now) {
					here.RenewedElsewhere(r.Election, r.Token, r.Left, now)
				}
			}
		}
		end := renewed + lease
		if open := waiting.Open(); open > end {
			t.Errorf("a lease of %v: the line asks %v after its end, want before", lease, open-end)
		}
		_, at, _ := here.Next(end)
		if late := at - end; late > lease/1000+250*time.Millisecond {
			t.Errorf("a lease of %v: its end is looked for %v late", lease, late)
		}
	}
}

func TestNewsOfARenewalElsewhereOnlyPutOffWhatIsKnown(t *testing.T) {
	const lease = 30 * time.Second
	vacant := leadership.Lease{Election: jobs, State: leadership.Vacant, Token: 1, Revision: 2, ReadAt: epoch.Add(start)}
	for name, c := range map[string]struct {
		before func(*view.View)
		token  leadership.Token
		left   time.Duration
		want   time.Duration // the moment at which the line asks, from the news on
	}{
		"news of the known term":        {nil, 1, lease, lease - time.Second},
		"an earlier end":                {nil, 1, 10 * time.Second, 20 * time.Second},
		"an end beyond a lease":         {nil, 1, time.Hour, lease - time.Second},
		"another term":                  {nil, 2, lease, 20 * time.Second},
		"a term that ended":             {func(v *view.View) { v.Learn(&vacant, view.Read, start, start) }, 1, lease, 0},
		"a term that ended by an event": {func(v *view.View) { v.Heard(event(2, leadership.EventReleased, "", 1), start) }, 1, lease, 0},
		"an event of the same term":     {func(v *view.View) { v.Heard(event(2, leadership.EventUpdated, "ann", 1), start) }, 1, lease, lease - time.Second},
	} {
		v := newView(true)
		e := v.Wait(jobs, nil)
		v.Learn(new(held(1, start-10*time.Second, lease)), view.Read, start-10*time.Second, start-10*time.Second)
		if c.before != nil {
			c.before(v)
		}
		version := e.Version()
		v.RenewedElsewhere(jobs, c.token, c.left, start)
		if got := e.Open() - start; got != c.want {
			t.Errorf("%s: the line asks in %v, want %v", name, got, c.want)
		}
		if e.Version() != version {
			t.Errorf("%s: the news count as the store's word", name)
		}
	}
}

func TestRenewedHereAreTheLeasesThatThisInstanceRenewedAndThatLast(t *testing.T) {
	v := newView(true)
	lease := func(e leadership.Election, now, left time.Duration) leadership.Lease {
		l := held(1, now, left)
		l.Election = e
		return l
	}
	v.Wait("read", nil)
	v.Learn(new(lease("read", start, time.Minute)), view.Read, start, start)
	v.Learn(new(lease("short", start, 2*time.Second)), view.Committed, start, start)
	v.Learn(new(lease("long", start, time.Minute)), view.Committed, start, start)
	v.Learn(new(lease("released", start, time.Minute)), view.Committed, start, start)
	v.Heard(leadership.Event{Election: "released", Revision: 2, Type: leadership.EventReleased, Token: 1}, start)
	got := v.RenewedHere(start + 3*time.Second)
	want := view.Renewal{Election: "long", Token: 1, Left: 57 * time.Second, Duration: time.Minute}
	if len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRenewedHereIsBounded(t *testing.T) {
	v := newView(true)
	for n := range 20_000 {
		l := held(1, start, time.Minute)
		l.Election = leadership.Election(fmt.Sprint("e-", n))
		v.Learn(&l, view.Committed, start, start)
	}
	assert.Len(t, v.RenewedHere(start), 10_000, "leases")
	later := start + 2*time.Minute
	l := held(1, later, time.Minute)
	l.Election = "new"
	v.Learn(&l, view.Committed, later, later)
	if got := v.RenewedHere(later); len(got) != 1 {
		t.Errorf("%d leases, want the one that has not ended", len(got))
	}
}
