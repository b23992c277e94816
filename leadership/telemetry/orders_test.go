package telemetry_test

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/service"
	"regent/leadership/telemetry"
	"regent/leadership/telemetry/telemetrytest"
	"regent/store/memory"
)

// declared returns the values of the constants of a type in a file of package leadership, from that
// comment on to the end of its block.
func declared(t *testing.T, file, kind, from string) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../" + file)
	require.NoError(t, err)
	_, block, _ := strings.Cut(string(text), from)
	block, _, _ = strings.Cut(block, "\n)")
	for _, m := range regexp.MustCompile(`(?m)^\t\w+ +`+kind+` += "(\w+)"`).FindAllStringSubmatch(block, -1) {
		all = append(all, m[1])
	}
	if len(all) == 0 {
		t.Errorf("%s declares no %s", file, kind)
	}
	return all
}

func TestEachEventReasonAndEndHasItsSeries(t *testing.T) {
	t.Parallel()
	labels := map[string][]string{}
	for _, m := range telemetry.Catalogue() {
		if len(m.Labels) == 1 {
			labels[m.Name] = m.Labels[0].Values
		}
	}
	var reasons []string
	for _, r := range declared(t, "errors.go", "Reason", "// The reasons of LeaseHeld.") {
		reasons = append(reasons, strings.ToLower(r))
	}
	for name, want := range map[string][]string{
		"regent.leadership.changes":       declared(t, "event.go", "EventType", "const ("),
		"regent.leadership.terms.limited": declared(t, "lease.go", "EndReason", "// The reasons for an EndsBy."),
		"regent.lease.contention":         append(reasons, "conflict"),
	} {
		assert.Empty(t, gocmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(labels[name]))), "%s: -package leadership +label", name)
	}
}

// order gives an operator's order.
func order(w *telemetrytest.Fixture, e leadership.Election, c leadership.Order) {
	w.Helper()
	c.Actor, c.Reason = cmp.Or(c.Actor, "olga"), "a test"
	_, err := w.Service.Do(w.Context(), c.In(e))
	require.NoError(w, err)
}

// limit sets the policy of an election.
func limit(w *telemetrytest.Fixture, e leadership.Election, p leadership.TermPolicy) {
	w.Helper()
	c := leadership.Configure{Config: leadership.Config{Term: p}}
	_, err := w.Service.Do(w.Context(), c.In(e))
	require.NoError(w, err)
}

// report renews with a report.
func report(w *telemetrytest.Fixture, lease leadership.LeaseRequest, text string) error {
	lease.Report = []byte(text)
	_, err := w.Service.Renew(w.Context(), lease)
	return err
}

// values checks values.
func values(w *telemetrytest.Fixture, what string, got telemetrytest.Values, want map[string]float64) {
	w.Helper()
	for series, value := range want {
		if got[series] != value {
			w.Errorf("%s: %s is %v, want %v", what, series, got[series], value)
		}
	}
}

func TestAPauseIsShownUntilItEndsAndIsNoLackOfALeader(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		w.Lead("jobs", "ann")
		order(w, "jobs", leadership.Order{Kind: leadership.OrderPause, For: 10 * time.Minute, Mode: leadership.PauseDrain})
		w.Settle(2 * time.Minute)
		values(w, "in the pause", w.Read(), map[string]float64{
			"regent.elections.paused": 1, "regent.elections.paused.age": 120, "regent.elections.leaderless": 0,
			"regent.leadership.terms.limited{because=drained}": 1, "regent.leadership.changes{type=expired}": 1,
		})
		order(w, "jobs", leadership.Order{Kind: leadership.OrderPause, For: 10 * time.Minute}) // goes on for longer
		w.Settle(10*time.Minute - time.Second)
		values(w, "longer", w.Read(), map[string]float64{"regent.elections.paused": 1, "regent.elections.paused.age": 719})
		w.Settle(21 * time.Second)
		values(w, "after its end", w.Read(), map[string]float64{
			"regent.elections.paused": 0, "regent.elections.paused.age": 0, "regent.elections.leaderless": 20,
		})
		order(w, "jobs", leadership.Order{Kind: leadership.OrderPause, For: time.Hour})
		w.Settle(time.Minute)
		order(w, "jobs", leadership.Order{Kind: leadership.OrderResume})
		w.Settle(15 * time.Second)
		values(w, "resumed", w.Read(), map[string]float64{"regent.elections.paused": 0, "regent.elections.leaderless": 15})
	})
}

func TestAHaltIsShownAsAPauseAndIsNoLackOfALeader(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		w.Lead("jobs.a", "ann")
		w.Lead("other", "ann")
		order(w, "jobs.*", leadership.Order{Kind: leadership.OrderHalt, For: 10 * time.Minute})
		w.Settle(time.Minute)
		values(w, "in the halt", w.Read(), map[string]float64{
			"regent.elections.paused": 1, "regent.elections.paused.age": 60, "regent.elections.leaderless": 30, // other
		})
		w.Lead("other", "bob")
		order(w, "*", leadership.Order{Kind: leadership.OrderHalt, For: time.Hour})
		order(w, "*", leadership.Order{Kind: leadership.OrderUnhalt})
		w.Settle(5 * time.Second)
		values(w, "all others are halted no more", w.Read(), map[string]float64{"regent.elections.paused": 1, "regent.elections.leaderless": 0})
		order(w, "jobs.*", leadership.Order{Kind: leadership.OrderUnhalt})
		w.Settle(15 * time.Second)
		values(w, "lifted", w.Read(), map[string]float64{"regent.elections.paused": 0, "regent.elections.leaderless": 15})
	})
}

func TestAnElectionWhoseFreeSeatsAreHaltedLacksNoLeader(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		seats := leadership.Configure{Election: "gpu", Config: leadership.Config{Seats: 2, LeaseDuration: 5 * time.Minute}}
		_, err := w.Service.Do(w.Context(), seats)
		require.NoError(t, err)
		w.Lead("gpu", "ann")
		order(w, "gpu.*", leadership.Order{Kind: leadership.OrderHalt, For: time.Hour})
		if _, err := w.Acquire("gpu", "bob", 50*time.Second); err == nil {
			t.Fatal("bob was granted a seat in the halt")
		}
		values(w, "in the halt", w.Read(), map[string]float64{"regent.elections.paused": 1, "regent.elections.paused.age": 50, "regent.elections.leaderless": 0})
		order(w, "gpu.*", leadership.Order{Kind: leadership.OrderUnhalt})
		order(w, "gpu.2*", leadership.Order{Kind: leadership.OrderHalt, For: time.Hour})
		values(w, "one of its seats is in the halt", w.Read(), map[string]float64{"regent.elections.paused": 0})
		order(w, "gpu.2*", leadership.Order{Kind: leadership.OrderUnhalt})
		order(w, "*", leadership.Order{Kind: leadership.OrderHalt, For: time.Hour})
		values(w, "all are", w.Read(), map[string]float64{"regent.elections.paused": 1})
		order(w, "*", leadership.Order{Kind: leadership.OrderUnhalt})
		order(w, "gpu", leadership.Order{Kind: leadership.OrderPause, For: time.Hour})
		values(w, "paused", w.Read(), map[string]float64{"regent.elections.paused": 1})
		order(w, "gpu", leadership.Order{Kind: leadership.OrderResume})
		order(w, "gpu.*", leadership.Order{Kind: leadership.OrderHalt, For: time.Hour})
		order(w, "gpu.*", leadership.Order{Kind: leadership.OrderUnhalt})
		w.Settle(5 * time.Second)
		values(w, "lifted", w.Read(), map[string]float64{"regent.elections.paused": 0, "regent.elections.leaderless": 5})
	})
}

func TestAnApprovalIsWaitedForFromTheQuestionUntilItIsGiven(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		limit(w, "jobs", leadership.TermPolicy{Approval: leadership.ApprovalPolicy{Every: time.Minute, Need: 2}})
		ann := w.Lead("jobs", "ann")
		w.Keep(ann, 20*time.Second)
		_, err := w.Service.Do(w.Context(), leadership.RequestApproval{LeaseRequest: ann, Note: "may I go on?"})
		require.NoError(t, err)
		w.Keep(ann, 30*time.Second)
		values(w, "asked", w.Read(), map[string]float64{
			"regent.approvals.waiting": 1, "regent.approvals.waiting.age": 30, "regent.leadership.changes{type=approvalRequested}": 1,
		})
		w.Settle(time.Minute)
		values(w, "not granted again", w.Read(), map[string]float64{
			"regent.approvals.waiting": 1, "regent.approvals.waiting.age": 90, "regent.elections.leaderless": 0,
			"regent.leadership.terms.limited{because=approval}": 1,
		})
		w.Acquire("jobs", "bob", 0)
		values(w, "refused", w.Read(), map[string]float64{"regent.lease.contention{reason=approval}": 1})
		order(w, "jobs", leadership.Order{Kind: leadership.OrderApprove, Token: ann.Token})
		values(w, "one of two", w.Read(), map[string]float64{"regent.approvals.waiting": 1})
		order(w, "jobs", leadership.Order{Kind: leadership.OrderApprove, Token: ann.Token, Actor: "otto"})
		w.Settle(5 * time.Second)
		values(w, "approved", w.Read(), map[string]float64{"regent.approvals.waiting": 0, "regent.approvals.waiting.age": 0, "regent.elections.leaderless": 5})
	})
}

func TestOrdersThatOtherInstancesAnnounceAreShown(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		at := time.Now()
		tell := func(r leadership.Revision, kind leadership.EventType, detail string) {
			e := leadership.Event{Election: "far", Revision: r, Type: kind, At: at, LeaderID: "ann", Token: 1, Detail: detail}
			w.Metrics.Bus(deliver{e}).Run(w.Context(), func(leadership.Event) {}, func(bool) {})
		}
		tell(1, leadership.EventAcquired, "")
		tell(2, leadership.EventPaused, `{"mode":"freeze","override":"pause-2","until":"`+at.Add(time.Hour).UTC().Format(time.RFC3339Nano)+`"}`)
		tell(3, leadership.EventApprovalRequested, "")
		tell(4, leadership.EventLifted, `{"override":"ban-1"}`)
		tell(5, leadership.EventApproved, `{"have":1,"need":2}`)
		w.Settle(5 * time.Second)
		values(w, "told", w.Read(), map[string]float64{
			"regent.elections.paused": 1, "regent.elections.paused.age": 5, "regent.approvals.waiting": 1, "regent.approvals.waiting.age": 5,
		})
		tell(6, leadership.EventLifted, `{"override":"pause-2"}`)
		tell(7, leadership.EventApproved, `{"have":2,"need":2}`)
		values(w, "told more", w.Read(), map[string]float64{"regent.elections.paused": 0, "regent.approvals.waiting": 0, "regent.leadership.changes{type=paused}": 0})
	})
}

func TestAPauseThatWasLiftedUnheardIsNotShownForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Config{})
		w, elsewhere := telemetrytest.On(t, store), service.New(store.Open())
		for _, e := range []leadership.Election{"a", "b"} {
			limit(w, e, leadership.TermPolicy{})
			order(w, e, leadership.Order{Kind: leadership.OrderPause, For: time.Hour})
		}
		w.Settle(time.Minute)
		resume := leadership.Order{Kind: leadership.OrderResume, Actor: "olga", Reason: "a test"}
		_, err := elsewhere.Do(t.Context(), resume.In("a"))
		require.NoError(t, err)
		values(w, "one is resumed", w.Read(), map[string]float64{"regent.elections.paused": 1, "regent.elections.paused.age": 60})
	})
}

func TestReportedWorkIsCountedOnceWhicheverInstanceHearsOfIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Config{})
		one, other := telemetrytest.On(t, store), telemetrytest.On(t, store.Open())
		limit(one, "jobs", leadership.TermPolicy{Budget: leadership.Counters{Calls: 100}})
		lease := one.Lead("jobs", "ann")
		for _, step := range []struct {
			w        *telemetrytest.Fixture
			report   string
			refused  bool
			one, two [4]float64 // tasks, tokens, calls and errors, by instance, in all
		}{
			{w: one, report: `{"tasks":3,"tokensUsed":1000,"calls":10,"errors":1,"progress":7}`, one: [4]float64{3, 1000, 10, 1}},
			{w: one, report: `{"tasks":3,"tokensUsed":1000,"calls":10,"errors":1,"progress":7}`, one: [4]float64{3, 1000, 10, 1}},
			{w: other, report: `{"tasks":4,"tokensUsed":1500,"calls":20,"errors":1}`, refused: true, one: [4]float64{3, 1000, 10, 1}}, // progress falls
			{w: other, report: `{"tasks":4,"tokensUsed":1500,"calls":20,"errors":1,"progress":7}`, one: [4]float64{3, 1000, 10, 1}, two: [4]float64{1, 500, 10, 0}},
			{w: one, report: `{"tasks":5,"tokensUsed":1500,"calls":21,"errors":2,"progress":7}`, one: [4]float64{4, 1000, 11, 2}, two: [4]float64{1, 500, 10, 0}},
			{w: other, report: `{"tasks":5,"tokensUsed":1501,"calls":101,"errors":2,"progress":7}`, refused: true, one: [4]float64{4, 1000, 11, 2}, two: [4]float64{1, 501, 90, 0}}, // deposed
			{w: other, report: `{"tasks":5,"tokensUsed":1501,"calls":101,"errors":2,"progress":7}`, refused: true, one: [4]float64{4, 1000, 11, 2}, two: [4]float64{1, 501, 90, 0}},
		} {
			if err := report(step.w, lease, step.report); (err != nil) != step.refused {
				t.Fatalf("%s: %v", step.report, err)
			}
			for w, want := range map[*telemetrytest.Fixture][4]float64{one: step.one, other: step.two} {
				v := w.Read()
				got := [4]float64{v["regent.reported.tasks"], v["regent.reported.tokens"], v["regent.reported.calls"], v["regent.reported.errors"]}
				if got != want {
					t.Errorf("after %s: %v, want %v", step.report, got, want)
				}
			}
		}
		values(other, "deposed", other.Read(), map[string]float64{"regent.leadership.changes{type=deposed}": 1, "regent.leadership.term.duration:count{end=deposed}": 1})
		inCatalogue(other)

		other.Settle(time.Minute)
		next := one.Lead("jobs", "bob")
		if err := report(one, next, `{"tasks":2}`); err != nil { // of a new term
			t.Fatal(err)
		}
		values(one, "the next term", one.Read(), map[string]float64{
			"regent.reported.tasks": 6, "regent.leadership.transition.duration:count{after=deposed}": 1,
		})
	})
}

func TestReportsOfABatchAreCounted(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		ann, bob := w.Lead("jobs", "ann"), w.Lead("mail", "bob")
		ann.Report, bob.Report = []byte(`{"tasks":1}`), []byte(`{"tasks":2}`)
		_, err := w.Service.BatchRenew(w.Context(), []leadership.LeaseRequest{ann, bob})
		require.NoError(w, err)
		values(w, "both", w.Read(), map[string]float64{"regent.reported.tasks": 3})
	})
}

func TestATermIsCountedByWhatLimitedIt(t *testing.T) {
	for because, play := range map[string]func(*telemetrytest.Fixture) bool{ // reports whether it was
		"stuck": func(w *telemetrytest.Fixture) bool {
			limit(w, "jobs", leadership.TermPolicy{StuckAfter: time.Minute})
			w.Keep(w.Lead("jobs", "ann"), 50*time.Second)
			w.Settle(20 * time.Second)
			return true
		},
		"a release before a limit": func(w *telemetrytest.Fixture) bool {
			limit(w, "jobs", leadership.TermPolicy{MaxTerm: time.Hour})
			w.Release(w.Lead("jobs", "ann"))
			return false
		},
		"a leader that dies before a limit": func(w *telemetrytest.Fixture) bool {
			limit(w, "jobs", leadership.TermPolicy{MaxTerm: time.Hour})
			w.NoLeader("jobs", time.Second)
			return false
		},
	} {
		t.Run(because, func(t *testing.T) {
			story(t, func(w *telemetrytest.Fixture) {
				limited := play(w)
				got := w.Read()
				if !limited {
					assert.Zero(t, got.Sum("regent.leadership.terms.limited"), "terms were limited")
					return
				}
				if got["regent.leadership.terms.limited{because="+because+"}"] != 1 || got.Sum("regent.leadership.terms.limited") != 1 {
					t.Errorf("got %v", of(got))
				}
			})
		})
	}
}

func TestANewEpochIsNoNewLeaderAndNoSplitBrain(t *testing.T) {
	story(t, func(w *telemetrytest.Fixture) {
		lease := w.Lead("jobs", "ann")
		for range 7 {
			w.Keep(lease, 20*time.Second)
			order(w, "jobs", leadership.Order{Kind: leadership.OrderApprove, Token: lease.Token, NewEpoch: true})
			w.Settle(10 * time.Second)
			w.Service.CheckToken(w.Context(), leadership.TokenCheck{Election: "jobs", Token: lease.Token})
			if _, err := w.Service.Renew(w.Context(), lease); err == nil {
				t.Fatal("the old token was renewed")
			}
			lease.Token = w.Lead("jobs", "ann").Token
		}
		values(w, "seven epochs", w.Read(), map[string]float64{
			"regent.elections.flapping": 0, "regent.leadership.splitbrain{op=renew}": 0, "regent.leadership.splitbrain{op=check}": 0,
			"regent.leadership.changes{type=epoch}": 7, "regent.leadership.term.duration:count{end=epoch}": 7,
			"regent.leadership.term.duration:sum{end=epoch}": 20 + 6*30, "regent.elections{state=held}": 1,
		})
		w.Keep(lease, 40*time.Second)
		w.Service.CheckToken(w.Context(), leadership.TokenCheck{Election: "jobs", Token: lease.Token - 1})
		lease.Token--
		w.Service.Renew(w.Context(), lease) // the leader asks late, and no other leads
		values(w, "much later", w.Read(), map[string]float64{"regent.leadership.splitbrain{op=check}": 1, "regent.leadership.splitbrain{op=renew}": 0})
	})
}

func TestAnInstanceThatMissedAnEpochSeesNoGrantInIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Config{})
		w, elsewhere := telemetrytest.On(t, store), telemetrytest.On(t, store.Open())
		lease := w.Lead("jobs", "ann")
		for range 7 {
			order(elsewhere, "jobs", leadership.Order{Kind: leadership.OrderApprove, Token: lease.Token, NewEpoch: true})
			lease.Token++
			w.Keep(lease, 10*time.Second)
		}
		values(w, "seven epochs elsewhere", w.Read(), map[string]float64{"regent.elections.flapping": 0, "regent.leadership.changes{type=epoch}": 0})
	})
}
