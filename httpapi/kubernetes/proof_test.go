package kubernetes_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"regent/httpapi/access/authn"
	"regent/leadership/rule"
)

// A client sends the time of its own clock with each write, and judges the end of a lease by that
// clock.
func TestAClientsClockEndsNoLeaseAndMakesNoneLonger(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(201, "POST", leases, claim("ann"))
	f.pass(14 * time.Second)
	for _, clock := range []string{"2001-01-01T00:00:00.000000Z", "2027-03-01T12:00:16.000000Z", "2090-01-01T00:00:00.000000Z"} {
		l := by(f.want(200, "GET", one, nil), "bob")
		spec := l["spec"].(object)
		spec["renewTime"], spec["acquireTime"], spec["leaseTransitions"] = clock, clock, 1
		if s := f.want(409, "PUT", one, l); s["reason"] != "Conflict" {
			t.Errorf("at %s by its clock: %v", clock, s)
		}
	}
	l := f.want(200, "GET", one, nil)
	if at(l, "spec", "holderIdentity") != "ann" || at(l, "spec", "renewTime") != "2027-03-01T12:00:00.000000Z" {
		t.Errorf("got %v", l)
	}
	l["spec"].(object)["renewTime"] = "2090-01-01T00:00:00.000000Z"
	f.want(200, "PUT", one, l)
	f.pass(15*time.Second + time.Millisecond)
	if l = f.want(200, "PUT", one, by(f.want(200, "GET", one, nil), "bob")); at(l, "spec", "leaseTransitions") != 1.0 {
		t.Errorf("after the end by the server's clock: %v", l)
	}
}

// A process of client-go that was paused would release the lease of another process of the same
// caller.
func TestAReleaseByAnotherProcessOrByNoneThatIsNamedIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.as = authn.Principal{Issuer: "i", Subject: "operator"}
	labelled := func(l object, process string) object {
		l["metadata"].(object)["labels"] = object{"app": "x", "regent/process": process}
		return l
	}
	f.want(201, "POST", leases, labelled(claim("bob"), "bob"))
	f.pass(time.Second)
	read := f.want(200, "GET", one, nil)
	for _, process := range []string{"ann", ""} {
		if s := f.want(403, "PUT", one, labelled(by(read, ""), process)); s["reason"] != "Forbidden" || !strings.Contains(s["message"].(string), "regent/process") {
			t.Errorf("got %v", s)
		}
	}
	if l := f.want(200, "GET", one, nil); at(l, "spec", "holderIdentity") != "bob" {
		t.Errorf("got %v", l)
	}
	if l := f.want(200, "PUT", one, labelled(by(read, ""), "bob")); at(l, "spec", "holderIdentity") != "" {
		t.Errorf("its own release: %v", l)
	}
}

// client-go reads an int32, and adds one to it.
func TestTransitionsEndBeforeTheLargestInt32AndTheTokenGoesOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(201, "POST", leases, claim("ann"))
	raise := func(s rule.Snapshot) (rule.Change, error) { return rule.Raise(s, rule.RaiseCommand{Above: 1 << 40}) }
	if _, err := f.journal.Update(t.Context(), "k8s.default.jobs", rule.Expect{}, raise); err != nil {
		t.Fatal(err)
	}
	f.pass(time.Hour)
	f.restart()
	l := by(f.want(200, "GET", one, nil), "bob")
	l["spec"].(object)["leaseTransitions"] = math.MaxInt32
	f.want(200, "PUT", one, l)
	l = f.want(200, "GET", one, nil)
	if at(l, "spec", "leaseTransitions") != float64(math.MaxInt32-1) || at(l, "metadata", "annotations", "regent/fencing-token") != "1099511627777" {
		t.Errorf("got %v", l)
	}
	f.want(200, "PUT", one, l)
}

func TestALeaseThatIsCreatedAgainGoesOnWithItsTransitions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	l := f.want(201, "POST", leases, claim("ann"))
	f.want(200, "PUT", one, by(l, ""))
	f.want(200, "DELETE", one, nil)
	f.pass(time.Second)
	l = f.want(201, "POST", leases, claim("bob"))
	for _, l := range []object{l, f.want(200, "GET", one, nil)} {
		if at(l, "spec", "leaseTransitions") != 1.0 || at(l, "metadata", "annotations", "regent/fencing-token") != "2" {
			t.Errorf("got %v", l)
		}
	}
}
