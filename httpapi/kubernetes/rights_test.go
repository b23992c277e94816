package kubernetes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authz"
	"regent/leadership/wire"
)

func TestEachRoleMayDoWhatItsVerbsAllow(t *testing.T) {
	t.Parallel()
	const merge = "application/merge-patch+json"
	for role, allowed := range map[wire.Role]string{
		wire.RoleCandidate: "get watch claim renew release",
		wire.RoleObserver:  "get list watch watchAll",
		wire.RoleVerifier:  "",
		wire.RoleScheduler: "",
		wire.RoleOperator:  "get list watch watchAll configure",
		wire.RoleAdmin:     "get list watch watchAll configure delete",
	} {
		covers := `, elections: ["k8s.default.*"]`
		switch role {
		case wire.RoleCandidate:
			covers += `, candidates: ["ann*"]`
		case wire.RoleScheduler:
			covers = ""
		}
		p, err := authz.ParsePolicy(fmt.Appendf(nil, "grants:\n  - {principals: [olga@test], roles: [candidate, admin], elections: [\"*\"], candidates: [\"*\"]}\n  - {principals: [ann@test], roles: [%s]%s}\n", role, covers), authz.Admitted)
		if err != nil {
			t.Fatal(err)
		}
		gate := authz.NewGate(func() *authz.Policy { return p }, func(context.Context, authz.Record) {})
		for _, c := range []struct {
			call, method, target string
			body                 any
			contentType          string
		}{
			{"get", "GET", one, nil, ""},
			{"list", "GET", leases, nil, ""},
			{"watch", "GET", leases + "?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Djobs", nil, ""},
			{"watchAll", "GET", leases + "?watch=1&timeoutSeconds=1", nil, ""},
			{"claim", "POST", leases, object{"metadata": object{"name": "new"}, "spec": object{"holderIdentity": "ann"}}, "application/json"},
			{"configure", "POST", leases, object{"metadata": object{"name": "new"}}, "application/json"},
			{"renew", "PATCH", one, object{"spec": object{"holderIdentity": "ann"}}, merge},
			{"release", "PATCH", one, object{"spec": object{"holderIdentity": ""}}, merge},
			{"delete", "DELETE", one, nil, ""},
			{"otherNamespace", "GET", "/apis/coordination.k8s.io/v1/namespaces/other/leases/jobs", nil, ""},
		} {
			f := newFixture(t, gate)
			if c.call == "renew" || c.call == "release" { // its own
				f.as = authn.Principal{Issuer: "i", Subject: "ann", Email: "ann@test"}
				f.do("POST", leases, claim("ann"))
			}
			f.as = authn.Principal{Issuer: "i", Subject: "olga", Email: "olga@test"}
			holder := "olga"
			if c.call == "renew" {
				holder = "" // a candidate may claim it
			}
			if status, _ := f.do("POST", leases, claim(holder)); status != 201 && status != 409 {
				t.Fatalf("olga: %d", status)
			}
			f.as = authn.Principal{Issuer: "i", Subject: "ann", Email: "ann@test"}
			want := slices.Contains(strings.Fields(allowed), c.call)
			if got := f.passes(c.method, c.target, c.body, c.contentType); got != want {
				t.Errorf("%s may %s: %v, want %v", role, c.call, got, want)
			}
		}
	}
}

// passes reports whether a request is let in.
func (f *fixture) passes(method, target string, body any, contentType string) bool {
	f.Helper()
	text := ""
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			f.Fatal(err)
		}
		text = string(b)
	}
	ctx, cancel := context.WithTimeout(authn.With(f.Context(), f.as), 5*time.Second)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(text))
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
