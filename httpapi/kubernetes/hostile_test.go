package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"regent/httpapi/kubernetes"
)

// field returns a field of a protobuf message: a string, a message, or a number.
func field(n protowire.Number, value any) []byte {
	switch v := value.(type) {
	case int:
		return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), uint64(v))
	case string:
		return protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), v)
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), value.([]byte))
}

func join(parts ...[]byte) (all []byte) {
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// protobufClaim returns claim in the form that client-go sends.
func protobufClaim(holder string) string {
	meta := join(field(1, "jobs"), field(3, "default"), field(11, join(field(1, "app"), field(2, "x"))))
	spec := join(field(1, holder), field(2, 15), field(3, join(field(1, 1000), field(2, 5))), field(4, join(field(1, 1000))), field(5, 0))
	raw := join(field(1, meta), field(2, spec))
	return "k8s\x00" + string(join(field(1, join(field(1, "coordination.k8s.io/v1"), field(2, "Lease"))), field(2, raw), field(3, ""), field(4, "")))
}

const protobuf = "application/vnd.kubernetes.protobuf"

func TestAClaimInProtobufIsAnsweredInJSON(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	l := f.want(201, "POST", leases, protobufClaim("ann"), "Content-Type", protobuf, "Accept", protobuf+",application/json")
	if at(l, "spec", "holderIdentity") != "ann" || at(l, "spec", "leaseDurationSeconds") != 15.0 || at(l, "metadata", "labels", "app") != "x" {
		t.Errorf("got %v", l)
	}
	options := "k8s\x00" + string(join(field(1, join(field(1, "v1"), field(2, "DeleteOptions"))), field(2, field(2, field(1, "another uid")))))
	f.want(409, "DELETE", one, options, "Content-Type", protobuf)
	f.want(200, "DELETE", one, "k8s\x00"+string(field(1, field(2, "DeleteOptions"))), "Content-Type", protobuf)
}

func TestABadRequestIsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	l := f.want(201, "POST", leases, claim("ann"))
	before := fmt.Sprint(f.want(200, "GET", one, nil))
	with := func(path string, value any) object {
		o := by(l, "ann")
		names := strings.Split(path, ".")
		m := o
		for _, name := range names[:len(names)-1] {
			m = m[name].(object)
		}
		m[names[len(names)-1]] = value
		return o
	}
	merge := "application/merge-patch+json"
	long := strings.Repeat("x", 70<<10)
	for _, c := range []struct {
		status         int
		method, target string
		body           any
		headers        []string
	}{
		{422, "PUT", one, with("metadata.resourceVersion", ""), nil},
		{422, "PUT", one, with("metadata.resourceVersion", "99999999999999999999"), nil},
		{400, "PUT", one, with("metadata.name", "other"), nil},
		{422, "PUT", one, with("spec.leaseDurationSeconds", 90000), nil},
		{422, "PUT", one, with("spec.strategy", "OldestEmulationVersion"), nil},
		{400, "PUT", one, with("spec.renewTime", "yesterday"), nil},
		{422, "PUT", one, with("spec.holderIdentity", strings.Repeat("x", 1025)), nil},
		{422, "PUT", one, with("metadata.finalizers", []string{"x"}), nil},
		{422, "PUT", one, with("metadata.annotations", object{"a": strings.Repeat("x", 5000)}), nil},
		{400, "PUT", one + "?dryRun=All", l, nil},
		{415, "PUT", one, l, []string{"Content-Type", "application/yaml"}},
		{415, "PUT", one, l, []string{"Content-Encoding", "gzip"}},
		{406, "PUT", one, l, []string{"Accept", "application/yaml"}},
		{413, "PUT", one, long, nil},
		{406, "GET", one, nil, []string{"Accept", protobuf}},
		{422, "PUT", one, with("metadata.labels", object{"$patch": "replace"}), nil},
		{422, "PUT", one, with("metadata.labels", object{"a": "with space"}), nil},
		{400, "PUT", one + "?fieldValidation=Strict", with("spec.holder", "bob"), nil},
		{400, "PUT", one + "?fieldValidation=Strict", `{"spec":{"holderIdentity":"bob","holderIdentity":"bob"}}`, nil},
		{400, "PUT", one, "", []string{"Content-Type", "application/json"}},
		{422, "PUT", one, "null", nil},
		{400, "PATCH", one + "?fieldValidation=Strict", object{"spec": object{"holder": "bob"}}, []string{"Content-Type", merge}},
		{400, "PUT", one, "k8s\x00\xff", []string{"Content-Type", protobuf}},
		{400, "PUT", one, strings.Replace(protobufClaim("ann"), "Lease", "Leash", 1), []string{"Content-Type", protobuf}},
		{404, "PUT", leases + "/never", object{"metadata": object{"resourceVersion": "5"}, "spec": object{"holderIdentity": "x"}}, nil},
		{415, "PATCH", one, "[]", []string{"Content-Type", "application/json-patch+json"}},
		{400, "PATCH", one, object{"spec": 5}, []string{"Content-Type", merge}},
		{422, "POST", leases, object{"metadata": object{"generateName": "x-"}}, nil},
		{400, "POST", leases, object{"metadata": object{"name": "new", "resourceVersion": "5"}}, nil},
		{422, "GET", strings.Replace(one, "default", "a.b", 1), nil, nil},
		{405, "POST", "/api/v1/namespaces/default", "{}", nil},
		{404, "GET", "/healthz", nil, []string{"Accept", "text/plain"}},
		{406, "GET", "/openapi/v2", nil, []string{"Accept", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"}},
		{404, "GET", "/openapi/v3/apis/apps/v1", nil, nil},
		{400, "GET", leases + "?fieldSelector=spec.holderIdentity%3Dx", nil, nil},
		{400, "GET", leases + "?labelSelector=" + strings.Repeat("!a,", 64) + "!a", nil, nil},
		{422, "GET", leases + "?watch=1&resourceVersion=x", nil, nil},
		{422, "GET", leases + "?watch=1&sendInitialEvents=true", nil, nil},
		{410, "GET", leases + "?watch=1&resourceVersion=9223372036854775", nil, nil},
		{400, "GET", leases + "?limit=x", nil, nil},
		{200, "GET", leases + "?limit=500&resourceVersion=0&resourceVersionMatch=NotOlderThan&timeoutSeconds=10", nil, nil},
		{400, "GET", leases + "?continue=x", nil, nil},
		{400, "GET", leases + "?resourceVersion=1&resourceVersionMatch=Exact", nil, nil},
		{400, "GET", leases + "?watch=1&timeoutSeconds=x", nil, nil},
		{400, "GET", one + "?watch=1&fieldSelector=metadata.name%3Dother", nil, nil},
		{400, "PATCH", one, object{"$patch": "replace", "spec": object{}}, []string{"Content-Type", "application/strategic-merge-patch+json"}},
		{400, "DELETE", one, "k8s\x00\n\t\n\x02v1\x12\x03Pod\x12\x00", []string{"Content-Type", "application/vnd.kubernetes.protobuf"}},
		{409, "DELETE", one, object{"preconditions": object{"uid": "x"}}, nil},
		{400, "DELETE", one, object{"dryRun": []string{"All"}}, nil},
		{400, "PUT", one, with("metadata.namespace", "other"), nil},
		{422, "PUT", one, with("metadata.ownerReferences", []object{{"kind": "Pod"}}), nil},
		{422, "PUT", one, with("spec.leaseTransitions", -1), nil},
		{422, "PUT", one, with("spec.leaseDurationSeconds", 0), nil},
		{422, "PUT", one + "?fieldValidation=strict", l, nil},
		{422, "POST", leases, object{"metadata": object{"name": "A"}}, nil},
		{422, "PUT", one, with("metadata.annotations", object{"a b": ""}), nil},
		{400, "GET", leases + "?resourceVersionMatch=NotOlderThan", nil, nil},
		{400, "GET", leases + "?resourceVersion=abc", nil, nil},
		{404, "GET", one + "/status", nil, nil},
		{400, "PUT", one, "{}", []string{"Content-Type", protobuf}},
		{400, "PATCH", one, object{"metadata": object{"$deleteFromPrimitiveList/finalizers": []string{"x"}}}, []string{"Content-Type", "application/strategic-merge-patch+json"}},
	} {
		f.pass(time.Millisecond) // so that a heartbeat would show
		if status, answer := f.do(c.method, c.target, c.body, c.headers...); status != c.status {
			t.Errorf("%s %s %.200v %v: %d %v, want %d", c.method, c.target, c.body, c.headers, status, answer["message"], c.status)
		}
		if after := fmt.Sprint(f.want(200, "GET", one, nil)); after != before {
			t.Fatalf("%s %s %.200v %v: it is now %s, and was %s", c.method, c.target, c.body, c.headers, after, before)
		}
	}
	if all := f.want(200, "GET", leases, nil)["items"].([]any); len(all) != 1 {
		t.Errorf("now there are %v", all)
	}
}

func TestStrangeFieldsAreRefusedOrWarnedOfAsTheClientWants(t *testing.T) {
	t.Parallel()
	const strange = `{"metadata":{"name":"jobs","managedFields":[{"anything":1}],"labels":{"any":"x"},"owner":"x"},"spec":{"holderIdentity":"ann","HolderIdentity":"bob","leaseDurationSeconds":15,"leaseDurationSeconds":16},"status":{}}`
	warnings := []string{`299 - "unknown field \"metadata.owner\""`, `299 - "unknown field \"spec.HolderIdentity\""`, `299 - "duplicate field \"spec.leaseDurationSeconds\""`, `299 - "unknown field \"status\""`}
	for mode, want := range map[string][]string{"": warnings, "Warn": warnings, "Ignore": nil} {
		f := newFixture(t)
		w := f.send("POST", leases+"?fieldValidation="+mode, strange, "Content-Type", "application/json")
		if got := w.Header()["Warning"]; w.Code != 201 || !slices.Equal(got, want) || !strings.Contains(w.Body.String(), `"holderIdentity":"ann"`) {
			t.Errorf("%q: %d %s, with the warnings %q, want %q", mode, w.Code, w.Body, got, want)
		}
	}
	f := newFixture(t)
	s := f.want(400, "POST", leases+"?fieldValidation=Strict", strange)
	for _, field := range []string{"metadata.owner", "spec.HolderIdentity", "spec.leaseDurationSeconds", "status"} {
		if !strings.Contains(s["message"].(string), field) {
			t.Errorf("%q does not name %s", s["message"], field)
		}
	}
	f.want(404, "GET", one, nil)
	f.want(201, "POST", leases+"?fieldValidation=Strict", claim("ann"))
	f.want(200, "PUT", one+"?fieldValidation=Strict", f.want(200, "GET", one, nil)) // the server's own answer
	many := object{}
	for i := range 200 {
		many[strings.Repeat("x\n", 50)+fmt.Sprint(i)] = 1
	}
	w := f.send("PATCH", one, string(must(json.Marshal(many))), "Content-Type", "application/merge-patch+json")
	if got := w.Header()["Warning"]; w.Code != 200 || len(got) != 10 || len(got[0]) > 300 || strings.Contains(got[0], "\n") {
		t.Errorf("%d, with the warnings %q", w.Code, got)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestLabelsOfALeaseWithoutAHolderAreWarnedOf(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, want := range map[string]int{"a": 1, "b": 0} {
		c := object{"metadata": object{"name": name, "annotations": object{"regent/fencing-token": "0"}}}
		if want > 0 {
			c["metadata"].(object)["labels"] = object{"app": "x"}
		}
		w := f.send("POST", leases, string(must(json.Marshal(c))), "Content-Type", "application/json")
		if w.Code != 201 || len(w.Header()["Warning"]) != want {
			t.Errorf("%d %s, with the warnings %q", w.Code, w.Body, w.Header()["Warning"])
		}
	}
}

// FuzzBody sends bodies that no Kubernetes client writes. Each must be answered with a document.
func FuzzBody(f *testing.F) {
	f.Add(protobufClaim("ann"), true)
	f.Add("k8s\x00\x12\x05\x0a\xff\xff\xff\xff", true)
	f.Add(`{"spec":{"holderIdentity":"ann"}}`, false)
	f.Add(`{"metadata":{"name":"jobs","labels":{"a":"b"},"resourceVersion":"1"},"spec":{"holderIdentity":"","leaseDurationSeconds":1}}`, false)
	f.Fuzz(func(t *testing.T, body string, binary bool) {
		w := newFixture(t)
		contentType := "application/json"
		if binary {
			contentType = protobuf
		}
		w.answered("POST", leases, body, "Content-Type", contentType)
		w.answered("PUT", one, body, "Content-Type", contentType)
		w.answered("PATCH", one, body, "Content-Type", "application/merge-patch+json")
		w.answered("PATCH", one+"?fieldValidation=Strict", body, "Content-Type", "application/strategic-merge-patch+json")
		w.answered("DELETE", one, body, "Content-Type", contentType)
	})
}

// FuzzPathAndQuery sends paths and queries that no Kubernetes client sends.
func FuzzPathAndQuery(f *testing.F) {
	f.Add("namespaces/default/leases/jobs", "metadata.name=jobs", "a in (b,c),!d", "1", "application/json;as=Table;v=v1;g=meta.k8s.io")
	f.Add("leases", "metadata.namespace==x,", "(", "-0", "*/*")
	f.Fuzz(func(t *testing.T, path, fields, labels, version, accept string) {
		w := newFixture(t)
		w.want(201, "POST", leases, claim("ann"))
		query := "?" + url.Values{"fieldSelector": {fields}, "labelSelector": {labels}, "resourceVersion": {version}, "timeoutSeconds": {"1"}}.Encode()
		for _, target := range []string{"/apis/coordination.k8s.io/v1/" + (&url.URL{Path: path}).EscapedPath(), leases} {
			w.answered("GET", target+query, "", "Accept", accept)
		}
	})
}

// answered sends a request that must be answered with a document, and not with a 5xx.
func (f *fixture) answered(method, target, body string, headers ...string) {
	f.Helper()
	if w := f.send(method, target, body, headers...); !json.Valid(w.Body.Bytes()) || w.Code >= 500 {
		f.Errorf("%s %s %q: %d %s", method, target, body, w.Code, w.Body)
	}
}

func TestWhatStandsBeforeTheDoorRefusesAsAnAPIServerDoes(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	kubernetes.Refuse(w, fmt.Errorf("secret"))
	var s object
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || s["reason"] != "InternalError" || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("got %s", w.Body)
	}
}

func TestAMethodThatIsNotAllowedIsAnsweredWithThoseThatAre(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for target, want := range map[string]string{
		"POST " + one: "GET, PUT, PATCH, DELETE", "DELETE " + leases: "GET, POST", "POST /apis/coordination.k8s.io/v1/leases": "GET", "POST /apis": "GET",
	} {
		method, path, _ := strings.Cut(target, " ")
		w := f.send(method, path, "")
		if got := w.Header().Get("Allow"); w.Code != 405 || got != want || !strings.Contains(w.Body.String(), want+"; ") {
			t.Errorf("%s: %d, Allow %q, %s", target, w.Code, got, w.Body)
		}
	}
}

// Not parallel: it counts what the process allocates.
func TestABodyTakesMemoryInProportionToItsSize(t *testing.T) {
	const most = 64 << 10
	nested := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	many := func(begin, each, end string) string {
		return begin + strings.Repeat(each, (most-len(begin)-len(end))/len(each)-1) + strings.TrimSuffix(each, ",") + end
	}
	var twice []byte
	for i := range 6_000 {
		twice = fmt.Appendf(twice, `"%d":0,`, i%3_000)
	}
	long := strings.Repeat("x", 30_000)
	for name, body := range map[string]string{
		"objects in objects":           nested(`{"a":`, "0", "}", 9_000),
		"fields twice":                 many(`{"`+long+`":{`, `"a":0,`, "}}"),
		"unknown fields":               `{"metadata":{` + string(twice) + `"a":0}}`,
		"objects beside objects":       many(`{"a":[`, `{"a":{}},`, "]}"),
		"owners":                       many(`{"metadata":{"ownerReferences":[`, "0,", "]}}"),
		"labels in protobuf":           "k8s\x00" + string(field(2, field(1, []byte(strings.Repeat("\x5a\x04\x0a\x02ab", most/6-10))))),
		"owners in protobuf":           "k8s\x00" + string(field(2, field(1, []byte(strings.Repeat("\x6a\x00", most/2-10))))),
		"options of a deletion":        "k8s\x00" + string(field(2, []byte(strings.Repeat("\x2a\x00", most/2-10)))),
		"a long name":                  `{"metadata":{"name":"` + long + long + `"}}`,
		"a name that is no label":      `{"metadata":{"labels":{"` + long + long + `":""}}}`,
		"a value that is not expected": `{"metadata":{"labels":{"` + long + `":[` + strings.Repeat("0,", 15_000) + `0]}}}`,
	} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			f := newFixture(t)
			f.want(201, "POST", leases, claim("ann"))
			target, contentType := one, "application/json"
			switch {
			case strings.HasPrefix(body, "k8s"):
				contentType = protobuf
			case method == "PATCH":
				contentType = "application/merge-patch+json"
			}
			if method == "POST" {
				target = leases
			}
			if len(body) > most {
				t.Fatalf("%s: %d bytes", name, len(body))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			w := f.send(method, target, body, "Content-Type", contentType)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 200*most || w.Body.Len() > 4<<10 {
				t.Errorf("%s %s: a body of %d bytes takes %d bytes, and the answer (%d) has %d", method, name, len(body), n, w.Code, w.Body.Len())
			}
		}
	}
}

// Not parallel: it counts what the process allocates.
func TestALongQueryIsReadOnceForAList(t *testing.T) {
	f := newFixture(t)
	const n = 200
	for i := range n {
		c := claim("ann")
		c["metadata"].(object)["name"] = fmt.Sprint("jobs-", i)
		f.want(201, "POST", leases, c)
	}
	taken := func(query string) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := f.send("GET", leases+query, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		runtime.ReadMemStats(&after)
		if w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if short, long := taken(""), taken("?"+strings.Repeat("a=b&", 2_000)); long > 2*short+4<<20 {
		t.Errorf("a list of %d Leases takes %d bytes, and with a long query %d", n, short, long)
	}
}
