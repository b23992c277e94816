package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/httpapi/access/authn/issuertest"
	"regent/httpapi/access/authz"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
	"regent/test/machine"
	"regent/test/process"
)

// roles is a policy that gives each role to a principal of its name, over elections that begin with
// "own".
const roles = `
grants:
  - {principals: [candidate@test], roles: [candidate], elections: ["own*"], candidates: ["ann*"]}
  - {principals: [observer@test], roles: [observer], elections: ["own*"]}
  - {principals: [verifier@test], roles: [verifier], elections: ["own*"]}
  - {principals: [scheduler@test], roles: [scheduler]}
  - {principals: [operator@test], roles: [operator], elections: ["own*"]}
  - {principals: [admin@test], roles: [admin], elections: ["own*", "foreign"]}
`

func TestReadmePoliciesAreValid(t *testing.T) {
	t.Parallel()
	policies := 0
	for _, page := range readmePages {
		for _, block := range readBlocks(t, "../"+page, "yaml") {
			if !strings.HasPrefix(block, "grants:") {
				continue
			}
			policies++
			if _, err := authz.ParsePolicy([]byte(block), authz.Admitted); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if policies == 0 {
		t.Error("the pages have no policy")
	}
}

func TestAPartOfASecretIsFound(t *testing.T) {
	t.Parallel()
	const secret = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
	if got := leaks("some "+secret[7:7+window]+" text", []string{"other", secret}); got != secret[7:7+window] {
		t.Errorf("found %q", got)
	}
	if got := leaks("some "+secret[7:6+window]+" text", []string{"other", secret}); got != "" {
		t.Errorf("found %q in less than a window", got)
	}
}

// Package authn tests all bad tokens; this tests one of each kind, in the real process.
func TestBadTokensAreRefused(t *testing.T) {
	t.Parallel()
	a := serveAsking(t, roles)
	claims := func(change string, to any) string {
		c := a.issuer.Claims(forRegent, "admin@test")
		c[change] = to
		return a.secret(a.issuer.Sign(c))
	}
	const elections = "/v1/elections"
	if r := a.ask(a.token("admin@test"), "GET", elections, ""); r.status != http.StatusOK {
		t.Fatalf("with a good token: %d %s", r.status, r.body)
	}
	for name, token := range map[string]string{
		"expired":        claims("exp", time.Now().Add(-time.Hour).Unix()),
		"other audience": claims("aud", "https://other.test"),
		"other issuer":   claims("iss", "https://other.test"),
		"forged":         a.forge("admin@test"),
		"cut":            a.secret(issuertest.CutSignature(a.token("admin@test"))),
		"none":           "",
	} {
		for _, call := range []struct{ method, path, body string }{
			{"GET", elections, ""},
			{"GET", elections + "/own-1", ""},
			{"POST", elections + "/own-1:acquire", `{"candidateId":"ann"}`},
			{"DELETE", elections + "/own-1", ""},
			{"POST", wire.PathTick, ""},
			{"GET", elections + "/", ""},
		} {
			r := a.ask(token, call.method, call.path, call.body)
			challenge := r.header.Get("WWW-Authenticate")
			if r.status != http.StatusUnauthorized || r.code() != wire.Unauthenticated || !strings.HasPrefix(challenge, "Bearer ") {
				t.Errorf("%s: %s %s: %d %s, WWW-Authenticate %q", name, call.method, call.path, r.status, r.body, challenge)
			}
		}
		for _, path := range []string{wire.PathLive, wire.PathReady, wire.PathSpec} {
			if r := a.ask(token, "GET", path, ""); r.status != http.StatusOK {
				t.Errorf("%s: GET %s: %d %s; want it without a token", name, path, r.status, r.body)
			}
		}
	}
}

// Package authz tests the whole table; this tests some calls of each role, in the real process.
func TestEachRoleHasTheRightsOfItsTable(t *testing.T) {
	t.Parallel()
	a := serveAsking(t, roles)
	for _, c := range []struct{ method, path, body, who string }{
		{"PUT", "/v1/elections/own-1", `{"leaseDuration":"30s"}`, "operator admin"},
		{"POST", "/v1/elections/own-1:acquire", `{"candidateId":"ann-1"}`, "candidate"},
		{"POST", "/v1/elections/own-1:acquire", `{"candidateId":"bob"}`, ""},
		{"POST", "/v1/elections/other:acquire", `{"candidateId":"ann-1"}`, ""},
		{"GET", "/v1/elections/own-1", "", "candidate observer operator admin"},
		{"GET", "/v1/elections/other", "", ""},
		{"GET", "/v1/elections", "", "observer operator admin"},
		{"GET", "/v1/elections/own-1/events", "", "candidate observer operator admin"},
		{"POST", "/v1/elections/own-1:checkToken", `{"fencingToken":1}`, "candidate observer verifier operator admin"},
		{"POST", "/v1/elections/own-1:ban", `{"candidateId":"bob","for":"1m","reason":"it hangs"}`, "operator admin"},
		{"GET", "/v1/elections/own-1/overrides", "", "candidate observer operator admin"},
		{"GET", "/v1/elections/own-1/candidates/bob:explain", "", "candidate observer operator admin"},
		{"POST", "/v1/elections/own-1:judge", `{"fencingToken":1,"verdict":"good","evidence":"page 7"}`, "verifier admin"},
		{"POST", "/v1/maintenance:tick", "", "scheduler operator admin"},
		{"DELETE", "/v1/elections/own-1?force=true", "", "admin"},
	} {
		for _, role := range []string{"candidate", "observer", "verifier", "scheduler", "operator", "stranger", "admin"} {
			r := a.ask(a.token(role+"@test"), c.method, c.path, c.body)
			switch may := slices.Contains(strings.Fields(c.who), role); {
			case may && (r.status == http.StatusForbidden || r.status == http.StatusUnauthorized || r.status >= 500):
				t.Errorf("%s: %s %s: %d %s; want it done", role, c.method, c.path, r.status, r.body)
			case !may && (r.status != http.StatusForbidden || r.code() != wire.PermissionDenied):
				t.Errorf("%s: %s %s %s: %d %s; want 403", role, c.method, c.path, c.body, r.status, r.body)
			}
		}
	}
}

func TestStrangersCannotTellWhichElectionsExist(t *testing.T) {
	t.Parallel()
	a := serveAsking(t, roles)
	if r := a.ask(a.token("admin@test"), "PUT", "/v1/elections/foreign", "{}"); r.status != http.StatusOK {
		t.Fatalf("configure: %d %s", r.status, r.body)
	}
	for _, c := range []struct{ method, suffix, body string }{
		{"GET", "", ""},
		{"GET", "/events", ""},
		{"PUT", "", "{}"},
		{"DELETE", "", ""},
		{"POST", ":acquire", `{"candidateId":"ann"}`},
		{"POST", ":checkToken", `{"fencingToken":1}`},
	} {
		looks := func(election string) string {
			r := a.ask(a.token("candidate@test"), c.method, "/v1/elections/"+election+c.suffix, c.body, wire.RequestIDHeader, "r-1")
			r.header.Del("Date")
			var text bytes.Buffer
			r.header.Write(&text)
			return strings.ReplaceAll(fmt.Sprintf("%d\n%s\n%s", r.status, &text, r.body), election, "ELECTION")
		}
		there, nowhere := looks("foreign"), looks("nothing")
		if diff := cmp.Diff(there, nowhere); diff != "" || !strings.HasPrefix(there, "403") {
			t.Errorf("%s %s of an election that is there (-) and of one that is not (+):\n%s\n%s", c.method, c.suffix, diff, there)
		}
	}
}

func TestThePolicyMayChangeWhileItIsInForce(t *testing.T) {
	t.Parallel()
	const grant = "grants: [{principals: [%s@test], roles: [observer], elections: ['*']}]\n"
	a := serveAsking(t, fmt.Sprintf(grant, "ann"))
	ann, bob := a.token("ann@test"), a.token("bob@test")
	a.await(http.StatusOK, ann, "GET", "/v1/elections", "")
	a.write(fmt.Sprintf(grant, "bob"))
	a.await(http.StatusOK, bob, "GET", "/v1/elections", "")
	a.await(http.StatusForbidden, ann, "GET", "/v1/elections", "")
	a.write("grants: [{principals: ['*'], roles: [admin], elections: ['*']}\n") // the bracket is missing
	for end := time.Now().Add(patience); !strings.Contains(a.log.String(), "the policy before it stays in force"); <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the log does not say that the policy cannot be used:\n%s", a.log)
		}
	}
	a.await(http.StatusOK, bob, "GET", "/v1/elections", "")
	a.await(http.StatusForbidden, ann, "GET", "/v1/elections", "")
}

// An issuer's new key is looked for no more than once a minute.
func TestAnIssuerMayChangeItsKey(t *testing.T) {
	t.Parallel()
	machine.LongOnly(t, "it takes a minute")
	a := serveAsking(t, roles)
	before := a.token("observer@test")
	a.await(http.StatusOK, before, "GET", "/v1/elections", "")
	a.issuer.Rotate(1)
	after := a.secret(a.issuer.Token(forRegent, "observer@test"))
	r := a.ask(after, "GET", "/v1/elections", "")
	if r.status == http.StatusUnauthorized {
		if r.header.Get("Retry-After") == "" {
			t.Errorf("%s; want it to say when to try again", r.body)
		}
		for end := time.Now().Add(90 * time.Second); r.status == http.StatusUnauthorized && time.Now().Before(end); <-time.After(time.Second) {
			r = a.ask(after, "GET", "/v1/elections", "")
		}
	}
	if r.status != http.StatusOK {
		t.Errorf("with the new key: %d %s", r.status, r.body)
	}
	if r := a.ask(before, "GET", "/v1/elections", ""); r.status != http.StatusOK {
		t.Errorf("with the old key, which is still shown: %d %s", r.status, r.body)
	}
}

func TestAnIssuerMayBeDown(t *testing.T) {
	t.Parallel()
	down := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	issuer := newIssuer(t)
	issuer.Break(down)
	a := serveTo(t, issuer, nil, roles, "--auth", "oidc", "--auth-issuer", issuer.URL())
	r := a.ask(a.token("observer@test"), "GET", "/v1/elections", "")
	if r.status != http.StatusServiceUnavailable || r.code() != leadership.StoreUnavailable || r.header.Get("Retry-After") == "" {
		t.Errorf("before the issuer ever answered: %d %s, Retry-After %q", r.status, r.body, r.header.Get("Retry-After"))
	}
	issuer.Break(nil)
	a.await(http.StatusOK, a.token("observer@test"), "GET", "/v1/elections", "")
	issuer.Break(down)
	for _, who := range []string{"observer@test", "operator@test"} { // one that was verified, and one that is new
		if r := a.ask(a.token(who), "GET", "/v1/elections", ""); r.status != http.StatusOK {
			t.Errorf("%s, under a key that is known: %d %s", who, r.status, r.body)
		}
	}
}

func TestTheSDKLeadsWithAToken(t *testing.T) {
	t.Parallel()
	a := serveAsking(t, roles)
	var led leadership.Lease
	c := a.as("candidate@test", client.Candidate{ID: "ann-1", LeaseDuration: 6 * time.Second})
	err := c.Run(within(t, patience), "own-1", func(ctx context.Context, l *client.Lease) (err error) {
		select {
		case <-l.Extended():
		case <-ctx.Done():
		}
		led, err = a.as("observer@test", client.Candidate{}).Get(ctx, "own-1")
		return err
	})
	if err != nil || led.LeaderID != "ann-1" || led.Token != 1 {
		t.Errorf("%v, and %+v was seen", err, led)
	}
	for name, c := range map[string]struct {
		client *client.Client
		want   leadership.Code
	}{
		"a stranger":          {a.as("stranger@test", client.Candidate{ID: "ann-1"}), wire.PermissionDenied},
		"another's candidate": {a.as("candidate@test", client.Candidate{ID: "bob"}), wire.PermissionDenied},
		"no principal":        {a.client, wire.Unauthenticated},
	} {
		if l, err := c.client.Campaign(within(t, patience), "own-1"); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v; want %s", name, l, err, c.want)
		}
	}
	if len(a.heard.all()) < 3 {
		t.Error("no key was heard: the log is searched for nothing")
	}
}

// command runs the command line against the server.
func (a *authServer) command(args ...string) (stdout, stderr string, code int) {
	a.t.Helper()
	cmd := invoke(a.t, process.Regent, []string{"REGENT_SERVER=" + a.line}, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		a.t.Fatal(err)
	}
	a.heard.find(out.Bytes())
	return out.String(), said.String(), cmd.ProcessState.ExitCode()
}

func TestTheCommandLineLeadsWithATokenInAFile(t *testing.T) {
	t.Parallel()
	a := serveAsking(t, roles)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(a.token("candidate@test")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const renewed = "sleep 2.5; echo token $REGENT_FENCING_TOKEN" // after a renewal
	for _, c := range []struct {
		args []string
		code int
		want string // in what it prints or says
	}{
		{[]string{"acquire", "own-1", "--candidate", "ann-1", "--output", "json", "--id-token-file", file}, 0, `"fencingToken":1`},
		{[]string{"status", "own-1", "--id-token-file", file}, 0, "ann-1"},
		{[]string{"run", "own-2", "--candidate", "ann-2", "--lease", "6s", "--id-token-file", file, "--", "sh", "-c", renewed}, 0, "token 1\n"},
		{[]string{"acquire", "own-3", "--candidate", "bob", "--id-token-file", file}, 1, "candidate@test may not acquire"},
		{[]string{"acquire", "own-3", "--candidate", "ann-1"}, 1, "send an ID token"},
		{[]string{"status", "own-1"}, 1, "send an ID token"},
		{[]string{"run", "own-3", "--candidate", "ann-1", "--", "echo", "leads"}, 1, "send an ID token"},
		{[]string{"status", "own-1", "--id-token-file", file + ".gone"}, 5, "--id-token-file: open"},
	} {
		stdout, stderr, code := a.command(c.args...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) || strings.Contains(stdout, "leads") {
			t.Errorf("regent %s: exit code %d, want %d, and %q in\n%s%s", strings.Join(c.args, " "), code, c.code, c.want, stdout, stderr)
		}
		if leak := leaks(stderr, a.heard.all()); leak != "" {
			t.Errorf("regent %s says a secret: %s", strings.Join(c.args, " "), leak)
		}
	}
}

// One line for each refusal, for each grant, and for each call that needs an operator or an admin;
// none for other calls.
func TestTheAuditHasALineForWhatMustBeKnownLater(t *testing.T) {
	t.Parallel()
	a := serveAsking(t, roles)
	a.await(http.StatusOK, a.token("observer@test"), "GET", "/v1/elections", "") // the keys are there
	const own, foreign = "/v1/elections/own-1", "/v1/elections/foreign"
	want := map[string][]entry{}
	for i, c := range []struct {
		who, method, path, body string
		want                    *entry
	}{
		{"", "GET", own, "", &entry{Call: "GET", Outcome: "UNAUTHENTICATED"}},
		{"candidate", "GET", foreign, "", &entry{Principal: "candidate@test", Call: "read", Outcome: "PERMISSION_DENIED", Election: "foreign"}},
		{
			"candidate", "POST", own + ":acquire", `{"candidateId":"bob"}`,
			&entry{Principal: "candidate@test", Call: "acquire", Outcome: "PERMISSION_DENIED", Election: "own-1", Candidate: "bob"},
		},
		{
			"candidate", "POST", own + ":acquire", `{"candidateId":"ann"}`,
			&entry{Principal: "candidate@test", Call: "acquire", Outcome: "done", Election: "own-1", Candidate: "ann", FencingToken: 1},
		},
		{"candidate", "GET", own, "", nil},
		{"stranger", "POST", wire.PathTick, "", &entry{Principal: "stranger@test", Call: "tick", Outcome: "PERMISSION_DENIED"}},
		{"scheduler", "POST", wire.PathTick, "", &entry{Principal: "scheduler@test", Call: "tick", Outcome: "done"}},
		{"operator", "PUT", own, `{"lockDelay":"1s"}`, &entry{Principal: "operator@test", Call: "configure", Outcome: "done", Election: "own-1"}},
		{"operator", "DELETE", own, "", &entry{Principal: "operator@test", Call: "delete", Outcome: "PERMISSION_DENIED", Election: "own-1"}},
		{"admin", "DELETE", own, "", &entry{Principal: "admin@test", Call: "delete", Outcome: "LEASE_HELD", Election: "own-1"}},
		{"admin", "DELETE", own + "?force=true", "", &entry{Principal: "admin@test", Call: "delete", Outcome: "done", Election: "own-1"}},
		{"", "GET", wire.PathLive, "", nil},
	} {
		token, id := "", fmt.Sprintf("request-%d", i)
		if c.who != "" {
			token = a.token(c.who + "@test")
		}
		a.ask(token, c.method, c.path, c.body, wire.RequestIDHeader, id)
		if c.want != nil {
			c.want.Message, c.want.Severity, c.want.RequestID = "audit", "INFO", id
			want[id] = []entry{*c.want}
		}
	}
	got := a.audit()
	maps.DeleteFunc(got, func(id string, _ []entry) bool { return !strings.HasPrefix(id, "request-") })
	for _, entries := range got {
		entries[0].Reason = "" // a sentence, for who brought no good token
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the audit (-want +got):\n%s", diff)
	}
}

func TestOnCloudRunOnlyCheckedTokensCount(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		fmt.Fprint(w, "projects/1/regions/europe-west1")
	}))
	defer metadata.Close()
	front := httptest.NewServer(http.NotFoundHandler()) // the public URL, which cannot be reached from inside
	defer front.Close()
	env := []string{"K_SERVICE=regent", "GCE_METADATA_HOST=" + strings.TrimPrefix(metadata.URL, "http://"), "REGENT_AUTH_PROBE=" + front.URL}
	a := serveTo(t, issuer, env, roles, "--auth", "platform")
	awaitHealth(t, a.server, wire.Healthy) // it has probed
	token := func(change string, to any) string {
		c := issuer.Claims(forRegent, "observer@test")
		c["iss"], c[change] = "https://accounts.google.com", to
		return a.secret(issuer.Sign(c))
	}
	good := token("aud", forRegent)
	cut := a.secret(issuertest.CutSignature(good))
	const second = "X-Serverless-Authorization"
	for _, c := range []struct {
		name, first, second string
		want                int
	}{
		{"cut", cut, "", http.StatusOK},
		{"cut, in the second header", good, cut, http.StatusOK},
		{"none", "", "", http.StatusUnauthorized},
		{"cut, in both headers", cut, cut, http.StatusUnauthorized},
		{"cut, for another audience", issuertest.CutSignature(token("aud", "https://other.test")), "", http.StatusUnauthorized},
		{"cut and expired", issuertest.CutSignature(token("exp", time.Now().Add(-time.Hour).Unix())), "", http.StatusUnauthorized},
		{"cut, of another issuer", issuertest.CutSignature(token("iss", issuer.URL())), "", http.StatusUnauthorized},
		{"cut, of a stranger", issuertest.CutSignature(token("email", "stranger@test")), "", http.StatusForbidden},
		{"whole, in the second header, and cut in the first", cut, good, http.StatusUnauthorized},
		{"cut, after a call that any caller can make", cut, "", http.StatusOK},
		{"whole, so that no platform has cut it", "", good, http.StatusUnauthorized},
		{"cut, after that", cut, "", http.StatusServiceUnavailable},
	} {
		var headers []string
		if c.second != "" {
			headers = []string{second, "Bearer " + c.second}
		}
		if r := a.ask(c.first, "GET", "/v1/elections", "", headers...); r.status != c.want {
			t.Errorf("%s: %d %s; want %d", c.name, r.status, r.body, c.want)
		}
	}
	if r := a.ask("", "GET", wire.PathReady, ""); r.status != http.StatusServiceUnavailable || !strings.Contains(string(r.body), "callers are not verified;") {
		t.Errorf("ready: %d %s; want that it says why it refuses every call", r.status, r.body)
	}
}
