package kubernetes_test

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi/kubernetes"
	"regent/leadership"
	"regent/leadership/instance"
)

const typeMerge = "application/merge-patch+json"

// number returns the version of a document.
func (f *fixture) number(o object) int64 {
	f.Helper()
	n, err := strconv.ParseInt(at(o, "metadata", "resourceVersion").(string), 10, 64)
	require.NoError(f, err)
	return n
}

// text formats a version.
func text(version int64) string { return strconv.FormatInt(version, 10) }

func TestALeaseHasOneVersionForAsLongAsItIsTheSame(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	versions := map[int64]string{}
	same := func(state string) {
		t.Helper()
		version := f.number(f.want(200, "GET", one, nil))
		if before, ok := versions[version]; ok {
			t.Errorf("%s: it has version %d, as when it was %s", state, version, before)
		}
		versions[version] = state
		for range 3 {
			f.pass(time.Second)
			_, watched := f.stream("")()
			_, resumed := f.stream("fieldSelector=metadata.name%3Djobs&resourceVersion=1")()
			for how, l := range map[string]object{
				"get": f.want(200, "GET", one, nil), "list": f.want(200, "GET", leases, nil)["items"].([]any)[0].(object),
				"list of one": f.want(200, "GET", leases+"?fieldSelector=metadata.name%3Djobs", nil)["items"].([]any)[0].(object),
				"watch":       watched, "watch that resumes": resumed,
			} {
				if got := f.number(l); got != version {
					t.Errorf("%s, unchanged, in a %s: version %d, want %d", state, how, got, version)
				}
			}
			f.restart()
		}
		for _, wrong := range []string{"1", text(version - 1), text(version + 1)} {
			for _, holder := range []string{"", "bob"} {
				o := by(f.want(200, "GET", one, nil), holder)
				o["metadata"].(object)["resourceVersion"] = wrong
				if code, answer := f.do("PUT", one, o); code != 409 && (code != 403 || holder != "" || state != "held") {
					t.Errorf("%s: an update of version %s, and it is %d: %d %v", state, wrong, version, code, answer)
				}
			}
		}
		if got := f.number(f.want(200, "GET", one, nil)); got != version {
			t.Errorf("%s, and no update was made: version %d, want %d", state, got, version)
		}
	}
	f.want(201, "POST", leases, object{"metadata": object{"name": "jobs"}})
	same("new")
	l := f.want(200, "PUT", one, by(f.want(200, "GET", one, nil), "ann"))
	same("held")
	f.want(200, "PUT", one, by(l, ""))
	same("released")
	l = f.want(200, "PUT", one, by(f.want(200, "GET", one, nil), "bob"))
	f.pass(time.Minute)
	f.restart()
	same("over")
	f.want(409, "PUT", one, l) // a late renewal
	c := leadership.Configure{Election: "k8s.default.jobs"}
	c.Config.LeaseDuration = time.Hour
	if _, err := f.service.Do(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	same("configured")
}

// An instance hears of changes that others make with a delay, or only from the history.
func TestAWatchThatResumesFromALeaseMissesNoEarlierChangeThatComesLate(t *testing.T) {
	t.Parallel()
	for _, quiet := range []time.Duration{0, time.Second, 20 * time.Minute, 40 * time.Minute, 3 * time.Hour} {
		f := newFixture(t)
		f.want(201, "POST", leases, claim("ann"))
		f.pass(time.Minute)
		here := f.door
		next := f.stream("allowWatchBookmarks=true")
		next()
		f.pass(10 * time.Second)
		f.restart()       // another instance: the first one does not hear of its changes
		late := claim("") // does not change again
		late["metadata"] = object{"name": "late"}
		f.want(201, "POST", leases, late)
		f.pass(quiet)
		f.door = here
		f.want(200, "PATCH", one, object{"spec": object{"holderIdentity": "ann"}}, "Content-Type", typeMerge)
		f.want(200, "PATCH", one, object{"spec": object{"holderIdentity": ""}}, "Content-Type", typeMerge)
		var seen object
		for at(seen, "spec", "holderIdentity") != "" || at(seen, "metadata", "name") == "late" {
			_, seen = next()
		}
		if got, own := f.number(seen), f.now().UnixMicro(); got > own || got < own && quiet < 30*time.Minute {
			t.Errorf("after %v: a Lease that was written at %d has version %d", quiet, own, got)
		}
		f.pass(time.Second)
		f.restart()
		next = f.stream("resourceVersion=" + text(f.number(seen)))
		last := claim("ann")
		last["metadata"] = object{"name": "last"}
		f.want(201, "POST", leases, last)
		name := ""
		for name != "late" && name != "last" {
			_, o := next()
			name = at(o, "metadata", "name").(string)
		}
		if name != "late" {
			t.Errorf("after %v: a watch that resumes misses the change that came late", quiet)
		}
	}
}

func TestVersionsOfALeaseDoNotGoBackWhenAWatchResumesElsewhere(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	l := f.want(201, "POST", leases, claim("ann"))
	for range 3 {
		f.pass(10 * time.Second)
		l = f.want(200, "PUT", one, l)
	}
	f.restart()
	_, o := f.stream("resourceVersion=" + text(f.number(l)))()
	if f.number(o) != f.number(l) {
		t.Errorf("resumed from %d, and got version %d", f.number(l), f.number(o))
	}
	f.pass(time.Second)
	f.want(200, "PUT", one, o)
}

func TestAWatchTellsOfManyChangesOfOneLeaseOnceIfTheyAreOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.number(f.want(201, "POST", leases, claim("ann")))
	for range 150 { // more than a feed returns at once
		for _, holder := range []string{"", "bob"} {
			f.pass(time.Second)
			f.want(200, "PATCH", one, object{"spec": object{"holderIdentity": holder}}, "Content-Type", typeMerge)
		}
	}
	next := f.stream("resourceVersion=" + text(first))
	if _, o := next(); at(o, "spec", "leaseTransitions") != 150.0 {
		t.Errorf("got %v", o)
	}
	f.pass(time.Second)
	f.want(200, "PATCH", one, object{"spec": object{"holderIdentity": ""}}, "Content-Type", typeMerge)
	if kind, o := next(); kind != "MODIFIED" || at(o, "spec", "holderIdentity") != "" {
		t.Errorf("then got %s %v", kind, o)
	}
}

// An informer must not see a vacancy that a cluster would not show.
func TestALeaseThatIsCreatedAgainForAHolderIsNeverVacant(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	l := f.want(201, "POST", leases, claim("ann"))
	f.want(200, "PUT", one, by(l, ""))
	f.want(200, "DELETE", one, nil)
	next := f.stream("")
	f.pass(time.Second)
	f.want(201, "POST", leases, claim("bob"))
	if kind, o := next(); kind != "ADDED" || at(o, "spec", "holderIdentity") != "bob" {
		t.Errorf("a watch tells of %s %v", kind, o)
	}
	events, err := f.service.Events(t.Context(), leadership.EventsRequest{Election: "k8s.default.jobs", After: 3})
	if err != nil || len(events) != 2 || events[0].Type != leadership.EventRecreated || events[1].Type != leadership.EventAcquired || events[1].Token != 2 {
		t.Errorf("its history ends with %v, %v", events, err)
	}
}

func TestACreationThatIsRefusedLeavesADeletedLeaseDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(201, "POST", leases, claim("ann"))
	f.want(200, "DELETE", one, nil)
	large, long := claim("bob"), claim("bob")
	large["metadata"].(object)["annotations"] = object{"a": strings.Repeat("x", 5<<10)}
	long["spec"].(object)["holderIdentity"] = strings.Repeat("x", 2<<10)
	for status, body := range map[int][]object{409: {claim("bob")}, 422: {large, long}} {
		for _, one := range body {
			f.want(status, "POST", leases, one)
		}
	}
	f.want(404, "GET", one, nil)
	f.pass(time.Minute)
	f.want(422, "POST", leases, large)
	f.want(404, "GET", one, nil)
	events, err := f.service.Events(t.Context(), leadership.EventsRequest{Election: "k8s.default.jobs"})
	if err != nil || len(events) != 2 || events[1].Type != leadership.EventDeleted {
		t.Errorf("its history is %v, %v", events, err)
	}
	if l := f.want(201, "POST", leases, claim("bob")); at(l, "spec", "leaseTransitions") != 1.0 {
		t.Errorf("got %v", l)
	}
}

func TestAWriteOfAnotherObjectOrOfAVersionFromTheFutureIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	held := f.want(201, "POST", leases, claim("ann"))
	for _, holder := range []string{"ann", ""} {
		for _, change := range []object{{"resourceVersion": "9223372036854775807"}, {"resourceVersion": text(f.now().Add(time.Minute).UnixMicro())}, {"uid": "9f989617-0000-8ffc-8136-681810e33822"}} {
			for _, wanted := range []string{"ann", "bob", ""} {
				o := by(f.want(200, "GET", one, nil), wanted)
				maps.Copy(o["metadata"].(object), change)
				f.want(409, "PUT", one, o)
				f.want(409, "PATCH", one, object{"metadata": change, "spec": object{"holderIdentity": wanted}}, "Content-Type", typeMerge)
			}
			f.want(409, "DELETE", one, object{"preconditions": change})
		}
		f.pass(time.Second)
		f.want(200, "PATCH", one, object{"spec": object{"holderIdentity": ""}}, "Content-Type", typeMerge)
		if holder == "" {
			f.want(409, "DELETE", one, object{"preconditions": object{"resourceVersion": text(f.number(held))}})
		}
	}
}

// Clients sort Leases by it, and show an age from it.
func TestALeaseKeepsTheInstantOfItsCreationUntilItIsDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	created := func(l object, want string) {
		t.Helper()
		for _, l := range []object{l, f.want(200, "GET", one, nil), f.want(200, "GET", leases, nil)["items"].([]any)[0].(object)} {
			if at(l, "metadata", "creationTimestamp") != want {
				t.Errorf("got %v, want %s", l, want)
			}
		}
	}
	const first, second = "2027-03-01T12:00:00Z", "2027-03-01T12:01:42Z"
	l := f.want(201, "POST", leases, claim("ann"))
	l["metadata"].(object)["creationTimestamp"] = nil // as client-go writes none
	f.pass(1500 * time.Millisecond)
	created(f.want(200, "PUT", one, l), first)
	f.pass(48500 * time.Millisecond)
	l = f.want(200, "PUT", one, by(f.want(200, "GET", one, nil), "bob")) // the lease of ann has run out
	for range 2 {                                                        // heartbeats of a later term
		f.pass(time.Second)
		l = f.want(200, "PUT", one, by(f.want(200, "GET", one, nil), "bob"))
		created(l, first)
	}
	created(f.want(200, "PUT", one, by(l, "")), first)
	f.want(200, "DELETE", one, nil)
	f.pass(50 * time.Second)
	created(f.want(201, "POST", leases, object{"metadata": object{"name": "jobs"}}), second)
	f.restart()
	created(f.want(200, "PUT", one, by(f.want(200, "GET", one, nil), "ann")), second)
}

// changing is a service on which another caller's change comes before a deletion.
type changing struct {
	instance.Service
	first func()
}

func (c changing) Do(ctx context.Context, r leadership.Command) (leadership.Lease, error) {
	c.first()
	return c.Service.Do(ctx, r)
}

func TestADeletionOfAVersionIsRefusedIfTheLeaseChangesMeanwhile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	l := f.want(201, "POST", leases, claim("ann"))
	quick := f.door
	f.door = kubernetes.New(kubernetes.Config{Service: changing{f.service, func() {
		f.door = quick
		f.want(200, "PUT", one, by(l, ""))
		f.want(200, "PATCH", one, object{"spec": object{"holderIdentity": "bob"}}, "Content-Type", typeMerge)
	}}})
	version := object{"preconditions": object{"resourceVersion": at(l, "metadata", "resourceVersion")}}
	if s := f.want(409, "DELETE", one, version); s["reason"] != "Conflict" {
		t.Errorf("got %v", s)
	}
	if l := f.want(200, "GET", one, nil); at(l, "spec", "holderIdentity") != "bob" {
		t.Errorf("it is now %v", l)
	}
	f.want(200, "DELETE", one, nil)
}
