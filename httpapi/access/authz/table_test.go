package authz_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"regent/httpapi"
	"regent/httpapi/access/authn"
	"regent/httpapi/access/authz"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
	"regent/store/memory"
)

var update = flag.Bool("update", false, "write the golden table anew")

// policyText gives each role to a principal of its name, over elections that begin with "own".
const policyText = `
grants:
  - {principals: [candidate@test], roles: [candidate], elections: ["own*"], candidates: ["ann*"]}
  - {principals: [observer@test], roles: [observer], elections: ["own*"]}
  - {principals: [verifier@test], roles: [verifier], elections: ["own*"]}
  - {principals: [scheduler@test], roles: [scheduler]}
  - {principals: [operator@test], roles: [operator], elections: ["own*"]}
  - {principals: [admin@test], roles: [admin], elections: ["own*"]}
`

// callOf says which call a route makes. A route that stands nowhere here is refused by the test: whoever adds one has to say who may call it.
var callOf = map[string]authz.Call{
	"POST /v1/elections/{election:[^:/]+}:acquire":    authz.Acquire,
	"POST /v1/elections/{election:[^:/]+}:renew":      authz.Renew,
	"POST /v1/elections/{election:[^:/]+}:release":    authz.Release,
	"POST /v1/elections/{election:[^:/]+}:checkToken": authz.CheckToken,
	"POST /v1/elections:batchRenew":                   authz.Renew,
	"POST /v1/elections:batchCheckTokens":             authz.CheckToken,
	"GET /v1/elections/{election:[^:/]+}":             authz.Read,
	"GET /v1/elections":                               authz.List,
	"GET /v1/elections/{election:[^:/]+}/events":      authz.Events,
	"GET /v1/events":                                  authz.WatchAll,
	"PUT /v1/elections/{election:[^:/]+}":             authz.Configure,
	"DELETE /v1/elections/{election:[^:/]+}":          authz.Delete,
	"POST /v1/maintenance:tick":                       authz.Tick,
}

// open are the routes that everybody may call.
var open = []string{"GET /health/live", "GET /health/ready", "GET /openapi.yaml"}

// cases are the requests that the table is made of: each call, in each of its forms.
var cases = []struct{ call, method, path, body, stream string }{
	{"acquire", "POST", "/v1/elections/{e}:acquire", `{"candidateId":"{c}"}`, ""},
	{"renew", "POST", "/v1/elections/{e}:renew", `{"candidateId":"{c}","key":"{k}","fencingToken":1}`, ""},
	{"batch renew", "POST", "/v1/elections:batchRenew", `{"renewals":[{"election":"{e}","candidateId":"{c}","key":"{k}","fencingToken":1}]}`, ""},
	{"release", "POST", "/v1/elections/{e}:release", `{"candidateId":"{c}","key":"{k}","fencingToken":1}`, ""},
	{"check token", "POST", "/v1/elections/{e}:checkToken", `{"fencingToken":1}`, ""},
	{"batch check tokens", "POST", "/v1/elections:batchCheckTokens", `{"checks":[{"election":"{e}","fencingToken":1}]}`, ""},
	{"read", "GET", "/v1/elections/{e}", "", ""},
	{"read, strongly", "GET", "/v1/elections/{e}?consistency=strong", "", ""},
	{"long poll", "GET", "/v1/elections/{e}?wait=1ms", "", ""},
	{"list", "GET", "/v1/elections", "", ""},
	{"history", "GET", "/v1/elections/{e}/events", "", ""},
	{"watch", "GET", "/v1/elections/{e}/events", "", wire.StreamType},
	{"watch all", "GET", "/v1/events?prefix={e}", "", wire.StreamType},
	{"watch all of all", "GET", "/v1/events", "", wire.StreamType},
	{"configure", "PUT", "/v1/elections/{e}", `{"leaseDuration":"30s"}`, ""},
	{"delete", "DELETE", "/v1/elections/{e}", "", ""},
	{"tick", "POST", "/v1/maintenance:tick", "", ""},
}

// Every role, every call, over elections of its own and over others, as itself and as somebody else, over HTTP.
func TestTheTableOfRightsIsAsWritten(t *testing.T) {
	t.Parallel()
	var table bytes.Buffer
	fmt.Fprintf(&table, "%-20s %-12s %-12s", "call", "election", "candidate")
	who := append([]string{"nobody"}, names()...)
	for _, role := range who {
		fmt.Fprintf(&table, " %-10s", role)
	}
	for _, c := range cases {
		for _, election := range []string{"own", "foreign"} {
			for _, candidate := range []string{"ann", "bob"} {
				if candidate == "bob" && !strings.Contains(c.body, "{c}") || election == "foreign" && !strings.Contains(c.path+c.body, "{e}") {
					continue
				}
				fmt.Fprintf(&table, "\n%-20s %-12s %-12s", c.call, election, candidate)
				for _, role := range who {
					fmt.Fprintf(&table, " %-10s", ask(t, role, c.method, c.path, c.body, c.stream, election, candidate))
				}
			}
		}
	}
	got := regexp.MustCompile(` +\n`).ReplaceAllString(table.String()+"\n", "\n")
	const golden = "testdata/rights.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the table of rights has changed (-written +found); if it should, go test ./httpapi/access/authz -update:\n%s", diff)
	}
}

func names() (all []string) {
	for _, r := range authz.Roles {
		all = append(all, string(r))
	}
	return all
}

// ask makes a call of a role's principal on a service where ann leads both elections, and says what became of it: "yes" if it came to the
// service.
func ask(t *testing.T, role, method, path, body, stream, election, candidate string) string {
	t.Helper()
	key := leadership.NewKey()
	service := newService(t, election, key)
	adapt := strings.NewReplacer("{e}", election, "{c}", candidate, "{k}", key.Text())
	r := httptest.NewRequest(method, adapt.Replace(path), strings.NewReader(adapt.Replace(body)))
	if body != "" {
		r.Header.Set("Content-Type", wire.ContentType)
	}
	if stream != "" {
		r.Header.Set("Accept", stream)
	}
	if strings.Contains(path, "wait=") {
		r.Header.Set("If-None-Match", `"1"`)
	}
	ctx, cancel := context.WithCancel(authn.With(t.Context(), authn.Principal{Issuer: "test", Subject: role, Email: role + "@test"}))
	defer cancel()
	w := &endless{ResponseRecorder: httptest.NewRecorder(), end: cancel, stream: stream != ""}
	service.ServeHTTP(w, r.WithContext(ctx))
	switch text := w.Body.String(); {
	case w.Code == http.StatusForbidden, strings.Contains(text, `"code":"PERMISSION_DENIED"`):
		return "-"
	case w.Code >= 500:
		t.Errorf("%s %s by %s: %d %s", method, path, role, w.Code, text)
	}
	return "yes"
}

// endless ends a stream once it has begun.
type endless struct {
	*httptest.ResponseRecorder
	end    func()
	stream bool
}

func (w *endless) Flush() {
	if w.stream {
		w.end()
	}
}

// newService is a service behind a Guard, on which ann leads.
func newService(t *testing.T, election string, key leadership.Key) http.Handler {
	t.Helper()
	handler, _ := guarded(t, policyText)
	service := handler.service
	_, err := service.Acquire(t.Context(), leadership.AcquireRequest{Election: leadership.Election(election), CandidateID: "ann", Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// house is an API behind a Guard, and the service behind both.
type house struct {
	http.Handler
	service *instance.Instance
	records *[]authz.Record
}

func guarded(t *testing.T, text string) (house, *authz.Policy) {
	t.Helper()
	service, err := instance.New(instance.Config{Store: memory.New(memory.Config{}), Name: "test", Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	policy, err := authz.ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var records []authz.Record
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		service.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-ran })
	guard := authz.NewGuard(service, func() *authz.Policy { return policy }, func(_ context.Context, r authz.Record) { records = append(records, r) })
	return house{httpapi.New(httpapi.Config{Service: guard}), service, &records}, policy
}

func TestEveryRouteHasAnEntryInTheTableOfRights(t *testing.T) {
	t.Parallel()
	h, _ := guarded(t, policyText)
	asked := map[authz.Call]bool{}
	err := chi.Walk(h.Handler.(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		name := method + " " + route
		call, guarded := callOf[name]
		if !guarded && !slices.Contains(open, name) {
			t.Errorf("%s has no entry: say in this test which call it makes, and in cases how", name)
		}
		asked[call] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range authz.Calls {
		if call != authz.Watch && !asked[call] { // a stream has the route of a history
			t.Errorf("no route makes the call %s", call)
		}
	}
}
