package kubernetes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
)

// A client counts the whole duration from the last answer that it took for a renewal. So no such
// answer may be sent if the lease ends earlier.

// left returns the time left of the lease, by the store's clock.
func (f *fixture) left() time.Duration {
	f.Helper()
	l, err := f.service.Get(f.Context(), "k8s.default.jobs")
	require.NoError(f, err)
	return l.ExpiresIn
}

func TestARenewalIsAConflictOnceTheLeaseCannotLastAsLongAsItsHolderWouldBelieve(t *testing.T) {
	t.Parallel()
	for _, order := range []leadership.Order{
		{Kind: leadership.OrderEvict},
		{Kind: leadership.OrderPause, Mode: leadership.PauseDrain, For: time.Hour},
		{Kind: leadership.OrderAssign, CandidateID: "bob", For: time.Hour},
	} {
		t.Run(string(order.Kind), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			l := f.want(201, "POST", leases, claim("ann"))
			f.pass(2 * time.Second)
			f.want(200, "PUT", one, l)
			order.Reason, order.Actor = "test", "olga"
			if _, err := f.service.Do(t.Context(), order.In("k8s.default.jobs")); err != nil {
				t.Fatal(err)
			}
			for range 4 { // as client-go does, within its deadline for renewals
				f.pass(2 * time.Second)
				s := f.want(409, "PUT", one, by(f.want(200, "GET", one, nil), "ann"))
				if s["reason"] != "Conflict" || !strings.Contains(s["message"].(string), "the lease ends in") {
					t.Errorf("got %v", s)
				}
			}
			f.want(409, "PATCH", one, object{"spec": object{"leaseDurationSeconds": 15}}, "Content-Type", "application/merge-patch+json")
			if left := f.left(); left != 7*time.Second {
				t.Errorf("%v are left of the lease, and its holder was promised 7s", left)
			}
			f.want(200, "PUT", one, by(f.want(200, "GET", one, nil), ""))
		})
	}
}

func TestALeaseIsNotGrantedIfItsTermMustEndBeforeItsHolderWouldBelieve(t *testing.T) {
	t.Parallel()
	for name, term := range map[string]leadership.TermPolicy{
		"maxTerm": {MaxTerm: 10 * time.Second}, "approval": {Approval: leadership.ApprovalPolicy{Every: 10 * time.Second}}, "stuckAfter": {StuckAfter: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			c := leadership.Configure{Election: "k8s.default.jobs"}
			c.Config = leadership.Config{LeaseDuration: 5 * time.Second, Term: term}
			if _, err := f.service.Do(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			wanted := by(f.want(200, "GET", one, nil), "ann")
			wanted["spec"].(object)["leaseDurationSeconds"] = 15
			if s := f.want(422, "PUT", one, wanted); s["reason"] != "Invalid" || !strings.Contains(s["message"].(string), "10000 ms") {
				t.Errorf("got %v", s)
			}
			if l, err := f.service.Get(t.Context(), "k8s.default.jobs"); err != nil || l.Token != 0 {
				t.Errorf("the election is %+v, %v", l, err)
			}
			wanted["spec"].(object)["leaseDurationSeconds"] = 10
			f.want(200, "PUT", one, wanted)
		})
	}
}

func TestAHolderOnProbationIsNotToldThatItLeads(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := leadership.Configure{Election: "k8s.default.jobs"}
	c.Config = leadership.Config{Term: leadership.TermPolicy{Verdicts: 1, Cooldown: time.Second}}
	if _, err := f.service.Do(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	wanted := by(f.want(200, "GET", one, nil), "ann")
	wanted["spec"].(object)["leaseDurationSeconds"] = 15
	f.want(200, "PUT", one, wanted)
	if _, err := f.service.Do(t.Context(), leadership.Judge{Election: "k8s.default.jobs", Token: 1, Verdict: leadership.VerdictBad, Evidence: "test", Actor: "olga"}); err != nil {
		t.Fatal(err)
	}
	f.pass(time.Minute)
	wanted["metadata"] = f.want(200, "GET", one, nil)["metadata"]
	if s := f.want(422, "PUT", one, wanted); !strings.Contains(s["message"].(string), "10000 ms") {
		t.Errorf("got %v", s)
	}
	if left := f.left(); left != 0 {
		t.Errorf("%v are left of a lease that was refused", left)
	}
	wanted["metadata"] = f.want(200, "GET", one, nil)["metadata"]
	wanted["spec"].(object)["leaseDurationSeconds"] = 10
	f.want(200, "PUT", one, wanted)
}

func TestAPatchOfTheTimeAloneLeavesTheDurationAsItIs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const lease = 1500 * time.Millisecond
	config := leadership.Configure{Config: leadership.Config{LeaseDuration: lease, MaxLeaseDuration: lease}}
	if _, err := f.service.Do(t.Context(), config.In("k8s.default.jobs")); err != nil {
		t.Fatal(err)
	}
	merge := []string{"Content-Type", "application/merge-patch+json"}
	for _, spec := range []object{{"holderIdentity": "ann"}, {"renewTime": "2027-03-01T12:00:00.000000Z"}} {
		f.pass(time.Second)
		l := f.want(200, "PATCH", one, object{"spec": spec}, merge...)
		if left := f.left(); left != lease || at(l, "spec", "leaseDurationSeconds") != 1.0 {
			t.Errorf("after %v %v are left, and the answer is %v", spec, left, l)
		}
	}
	if _, err := f.service.Do(t.Context(), leadership.Order{Kind: leadership.OrderEvict, Reason: "test", Actor: "olga"}.In("k8s.default.jobs")); err != nil {
		t.Fatal(err)
	}
	f.pass(time.Second)
	f.want(409, "PATCH", one, object{"spec": object{"renewTime": "2027-03-01T12:00:00.000000Z"}}, merge...)
}
