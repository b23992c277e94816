package rule_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"regent/leadership"
	"regent/leadership/rule"
)

func halting(kind leadership.OrderKind, pattern leadership.Election, reason string) decision {
	o := leadership.Order{Kind: kind, Election: pattern, Reason: reason}
	if kind == leadership.OrderHalt {
		o.For = time.Hour
	}
	return ordered(o)
}

func TestAHaltStandsForItsPatternUntilItIsReplacedOrLifted(t *testing.T) {
	s := rule.Snapshot{Record: rule.Record{Election: leadership.HaltsElection}, Now: noon, Guard: guard}
	_, err := halting(leadership.OrderUnhalt, "jobs.*", "x")(s)
	assert.ErrorIs(t, err, leadership.NotFound, "before the first halt there is one to lift")
	s = play(t, s, 0, halting(leadership.OrderHalt, "jobs.*", "poisoned"))
	requireNothing(t, "the same halt again", s, halting(leadership.OrderHalt, "jobs.*", "poisoned"))
	s = play(t, s, time.Second, halting(leadership.OrderHalt, "*", "all"))
	s, events := playEvents(t, s, time.Second, halting(leadership.OrderHalt, "jobs.*", "drained"))
	if d := events[0].ReadDetail(); events[0].Type != leadership.EventHalted || events[0].Actor != "op" || d.Elections != "jobs.*" || d.Override != "halt-3" {
		t.Errorf("the event is %+v", events[0])
	}
	all := s.Orders().List()
	if len(all) != 2 || all[0].Elections != "*" || all[1].Elections != "jobs.*" || all[1].Reason != "drained" {
		t.Errorf("the halts are %+v", all)
	}
	late := leadership.Order{Kind: leadership.OrderUnhalt, Election: "*", IfRevision: 1}
	_, err = ordered(late)(s)
	assert.ErrorIs(t, err, leadership.RevisionMismatch, "a late copy")
	requireNothing(t, "the lift of another pattern", s, halting(leadership.OrderUnhalt, "job*", "x"))
	s, events = playEvents(t, s, time.Second, halting(leadership.OrderUnhalt, "*", "mended"))
	if left := s.Orders().List(); events[0].Type != leadership.EventLifted || len(left) != 1 || left[0].Elections != "jobs.*" {
		t.Errorf("after %+v the halts are %+v", events, left)
	}
}

func TestManyHaltsLeaveRoomForOneOfAll(t *testing.T) {
	for name, reason := range map[string]string{"short": "x", "long": strings.Repeat(`"`, leadership.MaxReasonBytes)} {
		s := rule.Snapshot{Record: rule.Record{Election: leadership.HaltsElection}, Now: noon, Guard: guard}
		for n := 0; ; n++ {
			halt := halting(leadership.OrderHalt, leadership.Election(fmt.Sprintf("jobs-%d.*", n)), reason)
			if _, err := halt(s); err == nil {
				s = play(t, s, 0, halt)
			} else if errors.Is(err, leadership.LimitExceeded) && n > 2 {
				break
			} else {
				t.Fatalf("%s, halt %d: %v", name, n, err)
			}
		}
		play(t, s, 0, halting(leadership.OrderHalt, "*", reason))
	}
}

func TestNoCandidateIsGrantedAHaltedElectionAndItsLeaderGoesOn(t *testing.T) {
	var halts leadership.Overrides
	asks := func(id leadership.CandidateID) decision {
		return func(s rule.Snapshot) (rule.Change, error) {
			return rule.Acquire(s, rule.AcquireCommand{CandidateID: id, KeyHash: hash(id[0]), Halts: halts})
		}
	}
	for pattern, reason := range map[leadership.Election]leadership.Reason{
		"jobs*": leadership.ReasonHalted, "*": leadership.ReasonHalted, "job*": leadership.ReasonHalted, "jobs.*": "<nil>", "obs*": "<nil>",
	} {
		halts = leadership.NewOverrides([]leadership.Override{{ID: "halt-1", Kind: leadership.OverrideHalt, Elections: pattern, Actor: "op", Reason: "x", Since: noon, Until: noon.Add(time.Hour)}})
		for what, s := range map[string]rule.Snapshot{"never seen": at(elsewhere(), noon), "vacant": at(held(t, 0), noon.Add(59*time.Minute)), "yielded": yielded(t)} {
			if got := refusal(asks("bob"), s); got != reason {
				t.Errorf("%s: the halt of %q: got %q, want %q", what, pattern, got, reason)
			}
		}
		assert.EqualValues(t, "<nil>", refusal(asks("bob"), at(held(t, 0), noon.Add(time.Hour))), "at the end of the halt of %q", pattern)
		assert.EqualValues(t, "<nil>", refusal(asks("ann"), held(t, 5*time.Second)), "the leader is refused for the halt of %q", pattern)
		if reason != leadership.ReasonHalted {
			continue
		}
		s := held(t, 5*time.Second)
		if got := refusal(func(s rule.Snapshot) (rule.Change, error) {
			return rule.Apply(s, leadership.HandOver{LeaseRequest: annsLease(s).Request(), To: "bob", Within: time.Minute, Halts: halts})
		}, s); got != reason {
			t.Errorf("a hand-over in the halt of %q: %q", pattern, got)
		}
	}
}
