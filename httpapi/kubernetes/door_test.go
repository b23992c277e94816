package kubernetes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
	"regent/httpapi/kubernetes"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/service"
	"regent/leadership/wire"
	"regent/store/memory"
	"regent/store/storetest"
	"regent/test/machine"
)

// fixture is a door on a store in memory.
type fixture struct {
	*testing.T
	door    http.Handler
	service instance.Service
	store   *storetest.Fake
	calls   storetest.Counter // of the store, but for its journal
	passed  atomic.Int64      // nanoseconds since the beginning
	journal *memory.Store
	as      authn.Principal
	admit   wire.Admit
	before  atomic.Pointer[func()] // if set, runs once, before the next change of the store
}

func (f *fixture) now() time.Time {
	return time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(f.passed.Load()))
}

func (f *fixture) pass(d time.Duration) { f.passed.Add(int64(d)) }

func newFixture(t *testing.T, gates ...instance.Gate) *fixture {
	t.Helper()
	f := &fixture{T: t}
	f.journal = memory.New(memory.Config{Now: func() time.Time { return f.now() }})
	f.store = &storetest.Fake{Store: f.journal, Around: func(ctx context.Context, c storetest.Call, next func(context.Context) error) error {
		if c.Method == "Update" {
			if before := f.before.Swap(nil); before != nil {
				(*before)()
			}
		}
		return f.calls.Count(ctx, c, next)
	}}
	f.restart(gates...)
	return f
}

// restart gives the fixture another instance, with empty memory.
func (f *fixture) restart(gates ...instance.Gate) {
	f.Helper()
	start := f.now()
	i, err := instance.New(instance.Config{Store: f.store, Journal: f.journal, Alone: true, Now: func() time.Duration { return f.now().Sub(start) }})
	require.NoError(f, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { defer close(ran); i.Run(ctx) }()
	f.Cleanup(func() { cancel(); <-ran })
	f.service = instance.Guard(i, gates...)
	f.door = kubernetes.New(kubernetes.Config{Service: f.service, Admit: f.admit, Secret: func(ctx context.Context) ([]byte, error) { return service.SharedSecret(ctx, f.journal) }})
}

const (
	leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	one    = leases + "/jobs"
)

type object = map[string]any

// do sends a request. A text is sent as it is, anything else as JSON.
func (f *fixture) do(method, target string, body any, headers ...string) (int, object) {
	f.Helper()
	text, is := body.(string)
	if !is && body != nil {
		b, err := json.Marshal(body)
		require.NoError(f, err)
		text = string(b)
	}
	if text != "" {
		headers = append([]string{"Content-Type", "application/json"}, headers...)
	}
	w := f.send(method, target, text, headers...)
	var answer object
	if err := json.NewDecoder(bytes.NewReader(w.Body.Bytes())).Decode(&answer); err != nil || w.Header().Get("Content-Type") != "application/json" {
		f.Fatalf("%s %s: %d %s (%v), content type %q", method, target, w.Code, w.Body, err, w.Header().Get("Content-Type"))
	}
	if w.Code >= 400 && (answer["kind"] != "Status" || answer["status"] != "Failure" || answer["code"] != float64(w.Code) || answer["reason"] == nil || answer["message"] == "") {
		f.Errorf("%s %s: %d is no Status: %s", method, target, w.Code, w.Body)
	}
	return w.Code, answer
}

// send sends a request.
func (f *fixture) send(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(authn.With(f.Context(), f.as), method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.door.ServeHTTP(w, r)
	return w
}

// want is do, and requires that status.
func (f *fixture) want(status int, method, target string, body any, headers ...string) object {
	f.Helper()
	got, answer := f.do(method, target, body, headers...)
	if got != status {
		f.Fatalf("%s %s: %d %v, want %d", method, target, got, answer, status)
	}
	return answer
}

// at returns a value in a document, by its path.
func at(o any, path ...string) any {
	for _, name := range path {
		m, _ := o.(object)
		o = m[name]
	}
	return o
}

func claim(holder string) object {
	return object{"metadata": object{"name": "jobs", "namespace": "default", "labels": object{"regent/process": holder}}, "spec": object{
		"holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": "2001-01-01T00:00:00.000000Z", "renewTime": "2001-01-01T00:00:00.000000Z", "leaseTransitions": 0,
	}}
}

// by returns a Lease that was read, changed to another holder; "" releases it.
func by(o object, holder string) object {
	var copied object
	text, _ := json.Marshal(o)
	_ = json.Unmarshal(text, &copied)
	copied["spec"].(object)["holderIdentity"] = holder
	if holder != "" {
		copied["metadata"].(object)["labels"] = object{"regent/process": holder}
	}
	return copied
}

func TestALeaseIsClaimedRenewedTakenOverAndReleased(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if s := f.want(404, "GET", one, nil); s["reason"] != "NotFound" {
		t.Errorf("got %v", s)
	}
	first := f.want(201, "POST", leases, claim("ann_1"))
	if at(first, "spec", "leaseTransitions") != 0.0 || at(first, "metadata", "annotations", "regent/fencing-token") != "1" || at(first, "spec", "acquireTime") != "2027-03-01T12:00:00.000000Z" {
		t.Errorf("the store's time and token are not in %v", first)
	}
	if s := f.want(409, "POST", leases, claim("bob")); s["reason"] != "AlreadyExists" {
		t.Errorf("got %v", s)
	}
	f.pass(5 * time.Second)
	renewed := f.want(200, "PUT", one, first)
	if at(renewed, "spec", "renewTime") != "2027-03-01T12:00:05.000000Z" || at(renewed, "spec", "acquireTime") != at(first, "spec", "acquireTime") || at(renewed, "metadata", "resourceVersion") == at(first, "metadata", "resourceVersion") {
		t.Errorf("renewed: %v", renewed)
	}
	if s := f.want(409, "PUT", one, first); s["reason"] != "Conflict" {
		t.Errorf("with an old version: %v", s)
	}
	f.pass(14 * time.Second)
	if s := f.want(409, "PUT", one, by(f.want(200, "GET", one, nil), "bob")); s["reason"] != "Conflict" || !strings.Contains(s["message"].(string), "another 1000 ms") {
		t.Errorf("before the end: %v", s)
	}
	f.pass(1100 * time.Millisecond)
	if s := f.want(409, "PUT", one, renewed); s["reason"] != "Conflict" {
		t.Errorf("a late renewal: %v", s)
	}
	second := f.want(200, "PUT", one, by(f.want(200, "GET", one, nil), "bob"))
	if at(second, "spec", "leaseTransitions") != 1.0 || at(second, "metadata", "annotations", "regent/fencing-token") != "2" || at(second, "spec", "holderIdentity") != "bob" {
		t.Errorf("taken over: %v", second)
	}
	released := f.want(200, "PUT", one, by(second, ""))
	if at(released, "spec", "holderIdentity") != "" || at(released, "spec", "leaseTransitions") != 1.0 {
		t.Errorf("released: %v", released)
	}
	l, err := f.service.Get(t.Context(), "k8s.default.jobs")
	if err != nil || l.State != leadership.Vacant || l.Token != 2 {
		t.Errorf("the election is %+v, %v", l, err)
	}
}

func TestAnotherPrincipalNeitherRenewsNorReleases(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.as = authn.Principal{Issuer: "i", Subject: "ann"}
	l := f.want(201, "POST", leases, claim("agent"))
	f.as.Subject = "eve"
	f.pass(time.Second)
	before := f.want(200, "GET", one, nil)
	for _, body := range []object{l, by(l, "")} {
		if s := f.want(403, "PUT", one, body); s["reason"] != "Forbidden" {
			t.Errorf("got %v", s)
		}
	}
	f.want(403, "PATCH", one, object{"metadata": object{"labels": object{"a": "b"}}}, "Content-Type", "application/merge-patch+json")
	if after := f.want(200, "GET", one, nil); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("it is now %v, and was %v", after, before)
	}
	f.as.Subject = "ann"
	f.restart()
	f.want(200, "PUT", one, l) // also through an instance that has never seen it
}

// client-go abandons a renewal in progress when it stops, and repeats its release on 409.
func TestAReleaseAfterAnotherRenewalIsAConflictForItsOwnProcessAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	l := f.want(201, "POST", leases, claim("ann"))
	f.pass(time.Second)
	f.want(200, "PUT", one, l)
	other := by(l, "")
	other["metadata"].(object)["labels"] = object{"regent/process": "another"}
	if s := f.want(403, "PUT", one, other); s["reason"] != "Forbidden" {
		t.Errorf("got %v", s)
	}
	f.want(409, "PUT", one, by(l, ""))
	l = f.want(200, "GET", one, nil)
	f.before.Store(new(func() { // the holder has started again, and leads
		f.pass(time.Second)
		f.want(200, "PUT", one, l)
	}))
	f.want(409, "PUT", one, by(l, ""))
	f.want(200, "PUT", one, by(f.want(200, "GET", one, nil), ""))
}

func TestAWaitingElectorCostsTheStoreNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	l := f.want(201, "POST", leases, claim("ann"))
	f.want(200, "GET", one, nil)
	machine.Eventually(t, "the look at the start", func() bool { return f.calls.Take()["Retirable"] > 0 })
	const rounds = 20
	for range rounds {
		f.pass(2 * time.Second)
		l = f.want(200, "PUT", one, l)
		for range 10 {
			f.want(200, "GET", one, nil)
		}
	}
	if n := f.calls.Take(); n["Get"]+n["Update"]+n["Renew"] != rounds {
		t.Errorf("%d renewals and 10 times as many polls cost %v calls of the store, want one for each renewal", rounds, n)
	}
}

func TestLabelsAndLongIdentitiesAreKeptWhileTheLeaderLeads(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const holder = "system:serviceaccount/ann é"
	c := claim(holder)
	c["metadata"].(object)["labels"] = object{"app": "x"}
	c["metadata"].(object)["annotations"] = object{"note": "y", "regent/fencing-token": "99"}
	l := f.want(201, "POST", leases, c)
	f.pass(time.Second)
	l["metadata"].(object)["labels"] = object{"app": "z", "regent/process": "1"}
	l = f.want(200, "PUT", one, l)
	got := f.want(200, "GET", one, nil)
	if at(got, "spec", "holderIdentity") != holder || at(got, "metadata", "labels", "app") != "z" || at(got, "metadata", "annotations", "note") != "y" || at(got, "metadata", "annotations", "regent/fencing-token") != "1" {
		t.Errorf("got %v", got)
	}
	f.want(200, "PUT", one, by(l, ""))
	if got := f.want(200, "GET", one, nil); at(got, "metadata", "labels") != nil {
		t.Errorf("of a vacant lease: %v", got)
	}
}

func TestAPatchRenewsAndIsRefusedToAFieldManagerThatDoesNotHold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(201, "POST", leases, claim("ann"))
	renew := object{"spec": object{"renewTime": "2027-03-01T12:00:00.1+00:00"}}
	merge := []string{"Content-Type", "application/merge-patch+json"}
	f.pass(10 * time.Second)
	if l := f.want(200, "PATCH", one+"?fieldManager=ann", renew, merge...); at(l, "spec", "renewTime") != "2027-03-01T12:00:10.000000Z" {
		t.Errorf("got %v", l)
	}
	f.want(409, "PATCH", one+"?fieldManager=bob", renew, merge...)
	f.want(409, "PATCH", one+"?fieldManager=bob", object{"spec": object{"holderIdentity": "bob"}}, merge...)
	f.pass(16 * time.Second)
	f.want(200, "PATCH", one+"?fieldManager=bob", object{"spec": object{"holderIdentity": "bob", "leaseDurationSeconds": 20}}, "Content-Type", "application/strategic-merge-patch+json")
	f.want(200, "PATCH", one, object{"spec": object{"holderIdentity": nil}}, merge...)
	if l := f.want(200, "GET", one, nil); at(l, "spec", "holderIdentity") != "" {
		t.Errorf("got %v", l)
	}
}

// kube-leader-election for Rust releases like this, and names itself only in the query. A late
// release finds the lease of another holder.
func TestALatePatchReleasesNoLeaseOfAnotherHolder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const merge = "application/merge-patch+json"
	f.want(201, "POST", leases, claim("ann"))
	f.pass(16 * time.Second)
	f.want(200, "PATCH", one+"?fieldManager=bob", object{"spec": object{"holderIdentity": "bob", "leaseDurationSeconds": 15}}, "Content-Type", merge)
	for _, empty := range []any{"", nil} {
		release := object{"spec": object{"holderIdentity": empty, "acquireTime": nil, "renewTime": "2027-03-01T12:00:20.000000Z"}}
		if s := f.want(403, "PATCH", one+"?fieldManager=ann", release, "Content-Type", merge); s["reason"] != "Forbidden" {
			t.Errorf("got %v", s)
		}
		if l := f.want(200, "GET", one, nil); at(l, "spec", "holderIdentity") != "bob" {
			t.Fatalf("got %v", l)
		}
	}
	f.want(200, "PATCH", one+"?fieldManager=bob", object{"spec": object{"holderIdentity": ""}}, "Content-Type", merge)
	f.want(200, "PATCH", one+"?fieldManager=ann", object{"spec": object{"holderIdentity": ""}}, "Content-Type", merge) // of a vacant lease
}

// stream opens a watch of the namespace, and returns a function that reads its next event.
func (f *fixture) stream(query string) (next func() (kind string, o object)) {
	f.Helper()
	return f.streamOf(leases, query)
}

// streamOf opens a watch of a path.
func (f *fixture) streamOf(path, query string) (next func() (kind string, o object)) {
	f.Helper()
	server := httptest.NewServer(f.door)
	ctx, cancel := context.WithCancel(f.Context())
	f.Cleanup(func() { cancel(); server.CloseClientConnections(); server.Close() })
	r, _ := http.NewRequestWithContext(ctx, "GET", server.URL+path+"?watch=true&"+query, nil)
	response, err := http.DefaultClient.Do(r)
	require.NoError(f, err)
	if response.StatusCode != 200 {
		text, _ := io.ReadAll(response.Body)
		f.Fatalf("watch %s: %d %s", query, response.StatusCode, text)
	}
	d := json.NewDecoder(response.Body)
	return func() (string, object) {
		f.Helper()
		var e struct {
			Type   string
			Object object
		}
		if err := d.Decode(&e); err != nil {
			f.Fatalf("watch %s: %v", query, err)
		}
		return e.Type, e.Object
	}
}

func TestAWatchTellsOfEveryChangeAndResumes(t *testing.T) {
	t.Parallel()
	for _, selector := range []string{"", "&fieldSelector=metadata.name%3Djobs"} {
		f := newFixture(t)
		f.want(201, "POST", leases, claim("ann"))
		next := f.stream("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true" + selector)
		if kind, o := next(); kind != "ADDED" || at(o, "spec", "holderIdentity") != "ann" {
			t.Errorf("%q: got %s %v", selector, kind, o)
		}
		kind, mark := next()
		if kind != "BOOKMARK" || at(mark, "metadata", "annotations", "k8s.io/initial-events-end") != "true" {
			t.Errorf("%q: got %s %v", selector, kind, mark)
		}
		f.pass(time.Second)
		f.want(200, "PATCH", one, object{"spec": object{"holderIdentity": ""}}, "Content-Type", "application/merge-patch+json")
		kind, o := next()
		if kind != "MODIFIED" || at(o, "spec", "holderIdentity") != "" {
			t.Errorf("%q: got %s %v", selector, kind, o)
		}
		f.pass(time.Second)
		f.want(200, "DELETE", one, nil)
		if kind, o := next(); kind != "DELETED" || at(o, "metadata", "name") != "jobs" || at(o, "metadata", "annotations", "regent/fencing-token") != "1" {
			t.Errorf("%q: got %s %v", selector, kind, o)
		}
		if selector == "" {
			f.pass(time.Second)
			if kind, o := f.stream("resourceVersion=" + at(mark, "metadata", "resourceVersion").(string))(); kind != "DELETED" {
				t.Errorf("resumed: got %s %v", kind, o)
			}
		}
	}
}

func TestAListHasTheLeasesThatAreSelected(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i, name := range []string{"a", "b.c", "d"} {
		c := claim("ann")
		c["metadata"] = object{"name": name, "labels": object{"n": strconv.Itoa(i)}}
		f.want(201, "POST", strings.Replace(leases, "default", "ns"+strconv.Itoa(i%2), 1), c)
	}
	if _, err := f.service.Acquire(t.Context(), leadership.AcquireRequest{Election: "other", CandidateID: "ann"}); err != nil {
		t.Fatal(err)
	}
	const all = "/apis/coordination.k8s.io/v1/leases"
	for target, want := range map[string]string{
		all: "a d b.c", all + "?labelSelector=n+in+(0,1),n!%3D0": "b.c", all + "?fieldSelector=metadata.name%3Dd": "d", all + "?labelSelector=!n": "",
		strings.Replace(leases, "default", "ns0", 1): "a d", strings.Replace(leases, "default", "ns9", 1): "",
		strings.Replace(leases, "default", "ns1", 1) + "?fieldSelector=metadata.name%3Db.c": "b.c",
	} {
		l := f.want(200, "GET", target, nil)
		var got []string
		for _, item := range l["items"].([]any) {
			got = append(got, at(item, "metadata", "name").(string))
		}
		if strings.Join(got, " ") != want || l["kind"] != "LeaseList" || at(l, "metadata", "resourceVersion") == nil {
			t.Errorf("%s: got %v, want %s", target, l, want)
		}
	}
	l := f.want(200, "GET", all, nil, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
	cells := l["rows"].([]any)[0].(object)["cells"].([]any)
	if l["kind"] != "Table" || fmt.Sprint(cells) != "[a ann 1 15s 0s]" {
		t.Errorf("got %v", l)
	}
}

func TestAWatchOfOneLeaseThatResumesTellsThatItIsGone(t *testing.T) {
	t.Parallel()
	const selector = "&fieldSelector=metadata.name%3Djobs"
	f := newFixture(t)
	c := claim("ann")
	c["metadata"].(object)["labels"] = object{"app": "x"}
	made := at(f.want(201, "POST", leases, c), "metadata", "resourceVersion").(string)
	f.pass(time.Second)
	freed := at(f.want(200, "PATCH", one, object{"spec": object{"holderIdentity": ""}}, "Content-Type", "application/merge-patch+json"), "metadata", "resourceVersion").(string)
	if kind, o := f.stream("resourceVersion=" + made + selector + "&labelSelector=app%3Dx")(); kind != "DELETED" {
		t.Errorf("without its label: got %s %v", kind, o)
	}
	f.pass(time.Second)
	f.want(200, "DELETE", one, nil)
	f.restart()
	f.pass(time.Second)
	next := f.stream("resourceVersion=" + freed + selector + "&allowWatchBookmarks=true")
	kind, o := next()
	if kind != "DELETED" || at(o, "metadata", "name") != "jobs" || at(o, "metadata", "annotations", "regent/fencing-token") != "1" {
		t.Errorf("deleted: got %s %v", kind, o)
	}
	next = f.stream("resourceVersion=" + at(o, "metadata", "resourceVersion").(string) + selector)
	f.pass(time.Minute)
	f.want(201, "POST", leases, claim("bob"))
	if kind, o := next(); kind != "ADDED" || at(o, "spec", "holderIdentity") != "bob" {
		t.Errorf("after it has seen that: got %s %v", kind, o)
	}
}

func TestAWatchOfANamedPathHasThatLeaseAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, name := range []string{"a", "jobs", "z"} {
		c := claim("ann")
		c["metadata"] = object{"name": name}
		f.want(201, "POST", leases, c)
	}
	next := f.streamOf(one, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	if kind, o := next(); kind != "ADDED" || at(o, "metadata", "name") != "jobs" {
		t.Errorf("got %s %v", kind, o)
	}
	if kind, o := next(); kind != "BOOKMARK" {
		t.Errorf("then got %s %v", kind, o)
	}
}
