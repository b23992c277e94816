package view_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
	"regent/leadership/rule"
)

// says is an event of ann's term with that detail.
func says(r leadership.Revision, t leadership.EventType, detail string) leadership.Event {
	e := event(r, t, "ann", 1)
	e.At, e.Detail = epoch, detail
	return e
}

func TestEventsOfAHandOverSayHowFarItHasCome(t *testing.T) {
	v := newView(true)
	e := v.Wait(jobs, nil)
	v.Learn(new(held(1, start, time.Minute)), view.Read, start, start)
	for _, step := range []struct {
		event leadership.Event
		want  leadership.Succession
	}{
		{says(2, leadership.EventHandingOver, `{"because":"handOver","endsBy":"2026-01-02T03:04:35Z","to":"bob"}`), leadership.Succession{To: "bob", Since: epoch, Left: 30 * time.Second}},
		{says(3, leadership.EventDelegated, `{"child":"jobs.part"}`), leadership.Succession{To: "bob", Since: epoch, Left: 30 * time.Second}},
		{says(4, leadership.EventReady, `{"candidateId":"bob"}`), leadership.Succession{To: "bob", Since: epoch, Left: 30 * time.Second, Ready: true}},
		{says(5, leadership.EventServing, ``), leadership.Succession{To: "bob", Since: epoch, Left: 30 * time.Second, Ready: true}},
		{says(6, leadership.EventHandingOver, `{"because":"handOver","endsBy":"2026-01-02T03:04:45Z","to":"cy"}`), leadership.Succession{To: "cy", Since: epoch, Left: 40 * time.Second}},
		{says(7, leadership.EventReady, `{"candidateId":"cy"}`), leadership.Succession{To: "cy", Since: epoch, Left: 40 * time.Second, Ready: true}},
		{says(8, leadership.EventYielded, `{"to":"cy"}`), leadership.Succession{To: "cy", Since: epoch, Left: rule.YieldWindow, Ready: true, Yielded: true}},
		{says(9, leadership.EventPaused, ``), leadership.Succession{To: "cy", Since: epoch, Left: rule.YieldWindow, Ready: true, Yielded: true}},
	} {
		if yielded := e.Yielded(start) != ""; yielded {
			if step.event.Revision <= 8 {
				t.Fatalf("it counts as yielded before %s", step.event.Type)
			}
		} else if !e.Leads("ann", start) {
			t.Errorf("the leader does not lead before it has yielded")
		}
		v.Heard(step.event, start)
		if got := e.Succession(start); got != step.want {
			t.Errorf("after %s %s: %+v, want %+v", step.event.Type, step.event.Detail, got, step.want)
		}
	}
	if e.Leads("ann", start) || e.Yielded(start) != "cy" {
		t.Error("a leader that has yielded leads")
	}
	assert.Zero(t, e.Succession(start+time.Hour).Left, "are left an hour later")
	v.Heard(event(10, leadership.EventAcquired, "cy", 2), start)
	if got := e.Succession(start); got != (leadership.Succession{}) || e.Yielded(start) != "" {
		t.Errorf("in the next term: %+v", got)
	}
}

func TestAYieldedLeaseEndsSoonAndNoNewsOfARenewalPutsThatOff(t *testing.T) {
	v := newView(true)
	e := v.Wait(jobs, nil)
	v.Learn(new(held(1, start, time.Hour)), view.Committed, start, start)
	require.Len(t, v.RenewedHere(start), 1, "leases were renewed here")
	v.Heard(says(2, leadership.EventYielded, `{"to":"bob"}`), start)
	v.RenewedElsewhere(jobs, 1, time.Hour, start)
	if open := e.Open(); open != start+rule.YieldWindow {
		t.Errorf("it is open in %v, want %v", open-start, rule.YieldWindow)
	}
	if all := v.RenewedHere(start); len(all) != 0 {
		t.Errorf("other instances are told that it was renewed: %v", all)
	}
	at, why := due(v, start+time.Minute, func(task view.Task, now time.Duration) {
		v.Expired(task, leadership.Lease{Election: jobs, State: leadership.Vacant, Token: 1, Revision: 3}, nil, now, now)
	})
	if len(at) != 1 || why[0] != view.End || at[0] < start+rule.YieldWindow || at[0] > start+rule.YieldWindow+time.Second {
		t.Errorf("its end is looked after at %v (%v)", at, why)
	}
	assert.Empty(t, e.Yielded(start+rule.YieldWindow), "after its end it counts as yielded")
}

func TestTheEndOfATermThatWasHandedOverIsNoVacancy(t *testing.T) {
	v := newView(true)
	e := v.Wait(jobs, nil)
	v.Learn(new(held(1, start, time.Hour)), view.Read, start, start)
	released := event(2, leadership.EventReleased, "", 1)
	released.Detail = `{"endsBecause":"handOver","to":"bob"}`
	v.Heard(released, start)
	if e.Open() <= start {
		t.Error("candidates would ask at once, though the successor leads")
	}
}

func TestAnInventedYieldIsForgotten(t *testing.T) {
	v := newView(true)
	e := v.Wait(jobs, nil)
	v.Learn(new(held(1, start, time.Hour)), view.Read, start, start)
	v.Heard(says(2, leadership.EventYielded, `{"to":"eve"}`), start)
	v.Learn(new(held(1, start+time.Second, time.Hour)), view.Read, start+time.Second, start+time.Second)
	if e.Yielded(start+2*time.Second) != "" || !e.Leads("ann", start+2*time.Second) {
		t.Error("the store has said otherwise since, and it still counts as yielded")
	}
}

func TestToWhomASeatIsAssignedIsKnownByTheStoreAndByEvents(t *testing.T) {
	v := newView(true)
	e := v.Wait(jobs, nil)
	assigned := func(to leadership.CandidateID, r leadership.Revision) *leadership.Lease {
		l := held(r, start, time.Minute)
		l.Seat = 1
		if to != "" {
			l.AssignedTo, l.AssignedUntil = to, l.ReadAt.Add(time.Hour)
		}
		return &l
	}
	want := func(after string, to leadership.CandidateID) {
		t.Helper()
		if got, until := e.Assigned(start); got != to || to != "" && until != start+time.Hour {
			t.Errorf("after %s it is assigned to %q until %v; want %q", after, got, until, to)
		}
	}
	v.Learn(assigned("bob", 1), view.Read, start, start)
	want("a read", "bob")
	v.Heard(says(2, leadership.EventLifted, `{"override":"assign-1"}`), start)
	want("a lift", "")
	v.Heard(says(3, leadership.EventAssigned, `{"candidateId":"cy","until":"2026-01-02T04:04:05Z"}`), start)
	want("an order", "cy")
	if to, _ := e.Assigned(start + time.Hour); to != "" {
		t.Errorf("when the time is over it is assigned to %q", to)
	}
	v.Learn(assigned("cy", 3), view.Read, start, start)
	v.SetLive(false, start)
	want("an end of the events, when a lift may be missed", "")
	v.Learn(assigned("cy", 3), view.Read, start, start)
	want("another read of the same", "cy")
	v.Learn(assigned("", 4), view.Read, start, start)
	want("a read without orders", "")
	v.Learn(assigned("cy", 5), view.Read, start, start)
	v.Heard(event(7, leadership.EventReleased, "", 1), start)
	v.Heard(says(6, leadership.EventLifted, `{"override":"assign-3"}`), start)
	want("a lift that came late", "")
	v.Heard(says(3, leadership.EventAssigned, `{"candidateId":"cy","until":"2026-01-02T04:04:05Z"}`), start)
	want("an order that came twice", "")
}
