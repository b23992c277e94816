package dashboard_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authz"
	"regent/httpapi/dashboard"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

func get(h http.Handler, who *authn.Principal, path string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if who != nil {
		r = r.WithContext(authn.With(r.Context(), *who))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// guarded admits the calls that the access file allows. It has no service, because no call is made.
func guarded(t *testing.T, role wire.Role) http.Handler {
	t.Helper()
	return over(t, role, "*")
}

func over(t *testing.T, role wire.Role, elections string) http.Handler {
	t.Helper()
	access, err := authz.ParseAccess([]byte("grants: [{principals: [ann@example.com], roles: ["+string(role)+"], elections: [\""+elections+"\"]}]"), authz.Admitted)
	require.NoError(t, err)
	gate := authz.NewGate(func() *authz.Access { return access }, func(context.Context, authz.Record) { t.Error("the question left a record") })
	return dashboard.New(dashboard.Visitor(instance.Guard(nil, gate)))
}

func TestAVisitorIsToldWhatItsRoleAllows(t *testing.T) {
	orders := []wire.Verb{wire.VerbAssign, wire.VerbEvict, wire.VerbPause, wire.VerbResume, wire.VerbBan, wire.VerbApprove, wire.VerbLift}
	left := []wire.Verb{wire.VerbCheckpoint, wire.VerbJournal}
	look := []wire.Verb{wire.VerbList, wire.VerbWatchAll, wire.VerbRead, wire.VerbWatch, wire.VerbExplain}
	for role, want := range map[wire.Role][]wire.Verb{
		wire.RoleCandidate: slices.Concat(look[2:], left),
		wire.RoleObserver:  look,
		"verifier":         {},
		wire.RoleScheduler: {},
		wire.RoleOperator:  slices.Concat(look, left, orders),
		"admin":            slices.Concat(look, left, orders),
	} {
		body, err := io.ReadAll(get(guarded(t, role), &authn.Principal{Issuer: "i", Subject: "s", Email: "ann@example.com"}, "/ui/visitor?election=reports").Body)
		require.NoError(t, err)
		var got struct {
			Principal string      `json:"principal"`
			May       []wire.Verb `json:"may"`
		}
		if err := wire.Unmarshal(body, &got); err != nil {
			t.Fatalf("%s: %v in %s", role, err, body)
		}
		if diff := cmp.Diff(want, got.May); diff != "" || got.Principal != "ann@example.com" {
			t.Errorf("%s: %s may (-want +got)\n%s", role, got.Principal, diff)
		}
	}
}

func TestAVisitorIsToldOverWhichElectionsItMayGiveOrders(t *testing.T) {
	type orders map[wire.Verb][]leadership.Election
	of := func(e leadership.Election) orders {
		return orders{wire.VerbEvict: {e}, wire.VerbPause: {e}, wire.VerbResume: {e}}
	}
	for _, c := range []struct {
		role            wire.Role
		elections, path string
		want            orders
	}{
		{wire.RoleOperator, "*", "/ui/visitor", of("*")},
		{wire.RoleOperator, "team-a.*", "/ui/visitor", of("team-a.*")},
		{wire.RoleOperator, "*", "/ui/visitor?election=reports", nil},
		{wire.RoleObserver, "*", "/ui/visitor", nil},
		{"halter", "*", "/ui/visitor", nil},
	} {
		body, err := io.ReadAll(get(over(t, c.role, c.elections), &authn.Principal{Issuer: "i", Subject: "s", Email: "ann@example.com"}, c.path).Body)
		require.NoError(t, err)
		var got struct {
			Orders orders `json:"orders"`
		}
		if err := wire.Unmarshal(body, &got); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		if diff := cmp.Diff(c.want, got.Orders); diff != "" {
			t.Errorf("%s of %q at %s (-want +got)\n%s", c.role, c.elections, c.path, diff)
		}
	}
}

func TestAWrongNameOfAnElectionIsRefused(t *testing.T) {
	if r := get(guarded(t, wire.RoleOperator), nil, "/ui/visitor?election=A%20B"); r.StatusCode != http.StatusBadRequest || !wire.IsProblem(r.Header) {
		t.Errorf("status %d, %v", r.StatusCode, r.Header)
	}
}

func TestThePageRunsNothingButItsOwnFiles(t *testing.T) {
	h := guarded(t, wire.RoleObserver)
	for path, status := range map[string]int{
		"/ui/": 200, "/ui/elections/reports": 200, "/ui/assets/app.js": 200, "/ui/assets/app.css": 200,
		"/ui": 302, "/": 302, "/ui/assets/none.js": 404, "/ui/other": 404, "/ui/assets/..%2Fdoc.go": 404,
	} {
		r := get(h, nil, path)
		if r.StatusCode != status {
			t.Errorf("%s: status %d, want %d", path, r.StatusCode, status)
		}
		if csp := r.Header.Get("Content-Security-Policy"); status == 200 && (!strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe")) {
			t.Errorf("%s: policy %q", path, csp)
		}
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		for _, inline := range []string{"<script>", "<style", " style=", " onclick=", "https://"} {
			if strings.HasSuffix(path, "/") && strings.Contains(string(body), inline) {
				t.Errorf("%s has %q in it", path, inline)
			}
		}
	}
}
