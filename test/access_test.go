package test

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/httpapi/access/authn"
	"regent/httpapi/access/authn/issuertest"
	"regent/httpapi/access/authz"
	"regent/httpapi/mcp"
	"regent/leadership/wire"
	"regent/test/process"
)

// roles is an access file that gives each role to a principal of its name, over elections that
// begin with "own".
const roles = `
grants:
  - {principals: [candidate@test], roles: [candidate], elections: ["own*", "k8s.default.*"], candidates: ["ann*"]}
  - {principals: [observer@test], roles: [observer], elections: ["own*"]}
  - {principals: [operator@test], roles: [operator], elections: ["own*"]}
  - {principals: [admin@test], roles: [admin], elections: ["own*", "k8s.default.*"]}
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
			if _, err := authz.ParseAccess([]byte(block), authz.Admitted); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if policies == 0 {
		t.Error("the pages have no access file")
	}
}

// Packages authn and authz test all bad tokens and the whole table of rights; this tests that they
// stand before every door of the real process.
func TestEveryDoorKnowsItsCallersAndTheirRights(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	a := serveTo(t, issuer, nil, roles, "--auth", "oidc", "--auth-issuer", issuer.URL(), "--mcp", "--kubernetes")
	expired := issuer.Claims(forRegent, "admin@test")
	expired["exp"] = time.Now().Add(-time.Hour).Unix()
	forged := issuertest.SignWith(issuertest.Key{ID: issuer.Key().ID, Private: issuertest.NewKey()}, issuer.Claims(forRegent, "admin@test"))
	strangers := map[string]string{
		"expired": issuer.Sign(expired), "forged": forged, "none": "",
		"other audience": issuer.Token("https://other.test", "admin@test"), "cut": issuertest.CutSignature(a.token("admin@test")),
	}
	for _, token := range strangers {
		if token != "" {
			a.secret(token)
		}
	}
	const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	for _, c := range []struct{ method, path, body, who string }{
		{"POST", "/v1/elections/own-1:acquire", `{"candidateId":"ann-1"}`, "candidate"},
		{"POST", "/v1/elections/own-1:acquire", `{"candidateId":"bob"}`, ""},
		{"POST", "/v1/elections/other:acquire", `{"candidateId":"ann-1"}`, ""},
		{"GET", "/v1/elections/own-1", "", "candidate observer operator admin"},
		{"GET", "/v1/elections/other", "", ""},
		{"POST", wire.PathTick, "", "operator admin"},
		{"POST", leases, `{"metadata":{"name":"x"},"spec":{"holderIdentity":"ann","leaseDurationSeconds":3600}}`, "candidate admin"},
		{"GET", leases + "/x", "", "candidate admin"},
		{"POST", mcp.Path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "candidate observer operator admin"},
		{"DELETE", "/v1/elections/own-1?force=true", "", "admin"},
	} {
		for name, token := range strangers {
			if r := a.ask(token, c.method, c.path, c.body); r.status != http.StatusUnauthorized || !strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Bearer ") {
				t.Errorf("%s: %s %s: %d %s, WWW-Authenticate %q", name, c.method, c.path, r.status, r.body, r.header.Get("WWW-Authenticate"))
			}
		}
		for _, role := range []string{"candidate", "observer", "operator", "stranger", "admin"} {
			r := a.ask(a.token(role+"@test"), c.method, c.path, c.body, "Accept", "application/json, text/event-stream")
			switch may := slices.Contains(strings.Fields(c.who), role); {
			case may && (r.status == http.StatusForbidden || r.status == http.StatusUnauthorized || r.status >= 500):
				t.Errorf("%s: %s %s: %d %s; want it done", role, c.method, c.path, r.status, r.body)
			case !may && r.status != http.StatusForbidden:
				t.Errorf("%s: %s %s %s: %d %s; want 403", role, c.method, c.path, c.body, r.status, r.body)
			}
		}
	}
	for path, resource := range map[string]string{"": forRegent, mcp.Path: forRegent + mcp.Path} {
		r := a.ask("", "GET", authn.ResourcePath+path, "")
		if want := `{"resource":"` + resource + `","authorization_servers":["` + issuer.URL() + `"],`; r.status != http.StatusOK || !strings.HasPrefix(string(r.body), want) {
			t.Errorf("GET %s%s: %d %s; want %s", authn.ResourcePath, path, r.status, r.body, want)
		}
	}
	for path, want := range map[string]string{mcp.Path: `Bearer realm="regent", resource_metadata="` + forRegent + authn.ResourcePath + mcp.Path + `"`, "/v1/elections": `Bearer realm="regent"`, leases: `Bearer realm="regent"`} {
		if r := a.ask("", "GET", path, ""); r.header.Get("WWW-Authenticate") != want {
			t.Errorf("GET %s asks for %q, not %q", path, r.header.Get("WWW-Authenticate"), want)
		}
	}
	for _, path := range []string{wire.PathLive, wire.PathReady, wire.PathSpec} {
		if r := a.ask("", "GET", path, ""); r.status != http.StatusOK {
			t.Errorf("GET %s: %d %s; want it without a token", path, r.status, r.body)
		}
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
	require.NoError(t, os.WriteFile(file, []byte(a.token("candidate@test")+"\n"), 0o600))
	for _, c := range []struct {
		args []string
		code int
		want string // in what it prints or says
	}{
		{[]string{"acquire", "own-1", "--candidate", "ann-1", "--output", "json", "--id-token-file", file}, 0, `"fencingToken":1`},
		{[]string{"run", "own-2", "--candidate", "ann-2", "--id-token-file", file, "--", "sh", "-c", "echo token $REGENT_FENCING_TOKEN"}, 0, "token 1\n"},
		{[]string{"acquire", "own-3", "--candidate", "bob", "--id-token-file", file}, 1, "candidate@test may not call acquire"},
		{[]string{"halt", "own-*", "--for", "1h", "--reason", "a test", "--id-token-file", file}, 1, "candidate@test may not call halt"},
		{[]string{"run", "own-3", "--candidate", "ann-1", "--", "echo", "leads"}, 1, "send an ID token"},
		{[]string{"status", "own-1", "--id-token-file", file + ".gone"}, 2, "--id-token-file: stat"},
	} {
		stdout, stderr, code := a.command(c.args...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) || strings.Contains(stdout, "leads") {
			t.Errorf("regent %s: exit code %d, want %d, and %q in\n%s%s", strings.Join(c.args, " "), code, c.code, c.want, stdout, stderr)
		}
		if leak := leaks(stderr, a.secrets()); leak != "" {
			t.Errorf("regent %s says a secret: %s", strings.Join(c.args, " "), leak)
		}
	}
}
