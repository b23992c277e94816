package kubernetes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authz"
	"regent/leadership"
	"regent/leadership/wire"
)

func TestEachRoleMayDoWhatItsVerbsAllow(t *testing.T) {
	t.Parallel()
	const all = "discover "
	for role, allowed := range map[wire.Role]string{
		wire.RoleCandidate: all + "get watch resume claim takeOver renew annotate release",
		wire.RoleObserver:  all + "get list watch resume watchAll",
		wire.RoleVerifier:  all,
		wire.RoleScheduler: all,
		wire.RoleOperator:  all + "get list watch resume watchAll configure",
		wire.RoleAdmin:     all + "get list watch resume watchAll configure delete",
	} {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			walk(t, role, strings.Fields(allowed))
		})
	}
}

// walk makes each call of the door as ann, in a role, and compares the admitted calls.
func walk(t *testing.T, role wire.Role, allowed []string) {
	const merge = "application/merge-patch+json"
	covers := `, elections: ["k8s.default.*"]`
	switch role {
	case wire.RoleCandidate:
		covers += `, candidates: ["ann*"]`
	case wire.RoleScheduler:
		covers = ""
	}
	p, err := authz.ParseAccess(fmt.Appendf(nil, "grants:\n  - {principals: [olga@test], roles: [candidate, admin], elections: [\"*\"], candidates: [\"*\"]}\n  - {principals: [ann@test], roles: [%s]%s}\n", role, covers), authz.Admitted)
	require.NoError(t, err)
	gate := authz.NewGate(func() *authz.Access { return p }, func(context.Context, authz.Record) {})
	const single = leases + "?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Djobs"
	for _, c := range []struct {
		call, lease    string // held by olga, by the caller if it may (own), vacant, or deleted
		method, target string
		body           any
		contentType    string
	}{
		{"discover", "held", "GET", "/apis", nil, ""},
		{"discover", "held", "GET", "/openapi/v3/apis/coordination.k8s.io/v1", nil, ""},
		{"get", "held", "GET", one, nil, ""},
		{"get", "held", "GET", leases + "?fieldSelector=metadata.name%3Djobs", nil, ""},
		{"list", "held", "GET", leases, nil, ""},
		{"listAllNamespaces", "held", "GET", "/apis/coordination.k8s.io/v1/leases", nil, ""},
		{"watch", "held", "GET", single, nil, ""},
		{"resume", "held", "GET", single + "&resourceVersion=1", nil, ""},
		{"resume", "deleted", "GET", single + "&resourceVersion=1", nil, ""},
		{"watchAll", "held", "GET", leases + "?watch=1&timeoutSeconds=1", nil, ""},
		{"watchAllNamespaces", "held", "GET", "/apis/coordination.k8s.io/v1/leases?watch=1&timeoutSeconds=1", nil, ""},
		{"claim", "held", "POST", leases, object{"metadata": object{"name": "new"}, "spec": object{"holderIdentity": "ann"}}, "application/json"},
		{"claimForAnother", "held", "POST", leases, object{"metadata": object{"name": "new"}, "spec": object{"holderIdentity": "bob"}}, "application/json"},
		{"configure", "held", "POST", leases, object{"metadata": object{"name": "new"}}, "application/json"},
		{"takeOver", "vacant", "PATCH", one, object{"spec": object{"holderIdentity": "ann"}}, merge},
		{"takeOverForAnother", "vacant", "PATCH", one, object{"spec": object{"holderIdentity": "bob"}}, merge},
		{"renew", "own or vacant", "PATCH", one, object{"spec": object{"holderIdentity": "ann"}}, merge},
		{"renewAnothers", "held", "PATCH", one, object{"spec": object{"renewTime": nil}}, merge},
		{"annotate", "own", "PATCH", one, object{"metadata": object{"annotations": object{"a": "b"}}}, merge},
		{"annotateAnothers", "held", "PATCH", one, object{"metadata": object{"annotations": object{"a": "b"}}}, merge},
		{"release", "own", "PATCH", one, object{"spec": object{"holderIdentity": ""}}, merge},
		{"releaseAnothers", "held", "PATCH", one, object{"spec": object{"holderIdentity": ""}}, merge},
		{"delete", "held", "DELETE", one, nil, ""},
		{"beginAgain", "deleted", "POST", leases, claim("ann"), "application/json"},
		{"otherNamespace", "held", "GET", strings.Replace(one, "default", "other", 1), nil, ""},
	} {
		f := newFixture(t, gate)
		ann, olga := authn.Principal{Issuer: "i", Subject: "ann", Email: "ann@test"}, authn.Principal{Issuer: "i", Subject: "olga", Email: "olga@test"}
		if f.as = ann; strings.HasPrefix(c.lease, "own") {
			f.do("POST", leases, claim("ann"))
		}
		f.as = olga
		holder := "olga"
		if strings.HasSuffix(c.lease, "vacant") {
			holder = ""
		}
		if status, _ := f.do("POST", leases, claim(holder)); status != 201 && status != 409 {
			t.Fatalf("olga: %d", status)
		}
		if c.lease == "deleted" {
			f.want(200, "DELETE", one, nil)
			f.pass(time.Minute)
		}
		f.as = ann
		want := slices.Contains(allowed, c.call)
		if got := f.passes(c.method, c.target, c.body, c.contentType); got != want {
			t.Errorf("%s may %s (%s): %v, want %v", role, c.call, c.lease, got, want)
		}
	}
}

// passes reports whether a request is admitted.
func (f *fixture) passes(method, target string, body any, contentType string) bool {
	f.Helper()
	text := ""
	if body != nil {
		b, err := json.Marshal(body)
		require.NoError(f, err)
		text = string(b)
	}
	r := httptest.NewRequestWithContext(authn.With(f.Context(), f.as), method, target, strings.NewReader(text))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	f.door.ServeHTTP(w, r)
	if w.Code != 403 && w.Code >= 300 {
		f.Errorf("%s %s: %d %s", method, target, w.Code, w.Body)
	}
	return w.Code != 403
}

// unread is a body that fails the test if it is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestABodyIsNotReadBeforeItsCallerIsAdmitted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var asked wire.Admission
	f.admit = func(_ context.Context, ask wire.Admission) (context.Context, func(), error) {
		asked = ask
		return nil, nil, &leadership.Error{Code: wire.RateLimited, RetryAfter: time.Second}
	}
	f.restart()
	for _, c := range []struct {
		method, target string
		role           wire.Role // that may make the call
		cost           wire.Cost
		election       leadership.Election
	}{
		{"POST", leases, wire.RoleCandidate, wire.CostCampaign, ""},
		{"POST", leases, wire.RoleOperator, wire.CostCampaign, ""},
		{"PUT", one, wire.RoleCandidate, wire.CostRenewal, "k8s.default.jobs"},
		{"PATCH", one, wire.RoleCandidate, wire.CostRenewal, "k8s.default.jobs"},
		{"DELETE", one, wire.RoleAdmin, wire.CostRead, "k8s.default.jobs"},
	} {
		asked = wire.Admission{}
		w := httptest.NewRecorder()
		f.door.ServeHTTP(w, httptest.NewRequest(c.method, c.target, unread{t}))
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %v %s", c.method, w.Code, w.Header(), w.Body)
		}
		if asked.Row == nil || !asked.Allows(c.role) || asked.Allows(wire.RoleObserver) || asked.Cost != c.cost || asked.Election != c.election || asked.Body != 64<<10 {
			t.Errorf("%s: asked for %+v of %+v", c.method, asked, asked.Row)
		}
	}
}
