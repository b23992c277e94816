package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"regent/emulators/need"
	"regent/httpapi/mcp"
	"regent/leadership/wire"
	"regent/test/process"
)

// bearing sends a token with each request.
type bearing struct {
	server *authServer
	email  string
}

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.server.token(b.email))
	return http.DefaultTransport.RoundTrip(r)
}

// model connects to the door for models, as a principal.
func (a *authServer) model(email string) (*sdk.ClientSession, error) {
	a.t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	m, err := c.Connect(a.t.Context(), &sdk.StreamableClientTransport{Endpoint: a.URL + mcp.Path, HTTPClient: &http.Client{Transport: bearing{a, email}}, MaxRetries: -1}, nil)
	if err == nil {
		a.t.Cleanup(func() { m.Close() })
	}
	return m, err
}

// use calls a tool, and returns its answer as text.
func use(t *testing.T, m *sdk.ClientSession, tool string, in map[string]any) (text string, refused bool) {
	t.Helper()
	r, err := m.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r.Content[0].(*sdk.TextContent).Text, r.IsError
}

func TestTheDoorForModelsKnowsItsCallers(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	a := serveTo(t, issuer, nil, roles, "--auth", "oidc", "--auth-issuer", issuer.URL(), "--mcp")
	for _, path := range []string{mcp.Path, mcp.Path + "/x"} {
		got := a.ask("", http.MethodPost, path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if got.code() != wire.Unauthenticated || got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("without a token, %s: %+v", path, got)
		}
	}
	ann, err := a.model("candidate@test")
	if err != nil {
		t.Fatal(err)
	}
	text, refused := use(t, ann, "lead", map[string]any{"election": "own", "candidateId": "ann", "keep": "1h"})
	var led struct{ Handle string }
	if err := json.Unmarshal([]byte(text), &led); err != nil || refused {
		t.Fatalf("lead: %s", text)
	}
	a.secret(led.Handle) // it must not be in the log
	operator, err := a.model("operator@test")
	if err != nil {
		t.Fatal(err)
	}
	if text, refused := use(t, operator, "stop_leading", map[string]any{"handle": led.Handle}); !refused || !strings.HasPrefix(text, "INVALID_ARGUMENT") {
		t.Errorf("stop_leading by an operator: %s", text)
	}
	for who, m := range map[string]*sdk.ClientSession{"an operator": operator, "a candidate": ann} {
		text, refused := use(t, m, "pause", map[string]any{"election": "own", "for": "1m", "reason": "a test"})
		if allowed := m == operator; refused == allowed || refused && !strings.HasPrefix(text, "PERMISSION_DENIED") {
			t.Errorf("pause by %s: %s", who, text)
		}
	}
	if _, err := a.model("stranger@test"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("a caller without any right connects: %v", err)
	}
	if text, _ := use(t, ann, "history", map[string]any{"election": "own"}); !strings.Contains(text, `"actor":"operator@test"`) || !strings.Contains(text, `"actor":"candidate@test"`) {
		t.Errorf("the history does not name its callers: %s", text)
	}
	if text, refused := use(t, ann, "leading", map[string]any{"handle": led.Handle}); refused || !strings.Contains(text, `"leading":true`) {
		t.Errorf("leading: %s", text)
	}
}

func TestAnyServerGoesOnWithAHandle(t *testing.T) {
	t.Parallel()
	store := inFirestore(t).with("--mcp")
	connect := func(s *server) *sdk.ClientSession {
		c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
		m, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: s.URL + mcp.Path, MaxRetries: -1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	first, second := store.serve(t), store.serve(t)
	text, refused := use(t, connect(first), "lead", map[string]any{"election": "reports", "leaseDuration": "1h"})
	var led struct{ Handle string }
	if err := json.Unmarshal([]byte(text), &led); err != nil || refused {
		t.Fatalf("lead: %s", text)
	}
	handle := map[string]any{"handle": led.Handle}
	for _, s := range []*server{second, first} {
		if text, refused := use(t, connect(s), "leading", handle); refused || !strings.Contains(text, `"leading":true`) {
			t.Errorf("leading: %s", text)
		}
	}
	first.kill()
	if text, refused := use(t, connect(second), "checkpoint_put", map[string]any{"handle": led.Handle, "data": 7}); refused {
		t.Errorf("checkpoint_put at the other server: %s", text)
	}
	if text, refused := use(t, connect(second), "stop_leading", handle); refused {
		t.Errorf("stop_leading at the other server: %s", text)
	}
	if text, _ := use(t, connect(second), "leading", handle); !strings.Contains(text, `"leading":false`) {
		t.Errorf("after stop_leading: %s", text)
	}
}

// node returns the command that runs a program of test/model, with its library, which npm gets once
// into .build.
func node(t *testing.T) func(program string, args ...string) *exec.Cmd {
	t.Helper()
	need.Programs(t, "node", "npm")
	dir, err := filepath.Abs("../.build/model")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"package.json", "client.mjs"} {
		copyFile(t, filepath.Join("model", name), filepath.Join(dir, name))
	}
	const lock = "package-lock.json"
	wanted, err := os.ReadFile(filepath.Join("model", lock))
	if err != nil {
		t.Fatal(err)
	}
	if there, err := os.ReadFile(filepath.Join(dir, lock)); err != nil || !bytes.Equal(there, wanted) {
		copyFile(t, filepath.Join("model", lock), filepath.Join(dir, lock))
		install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		install.Dir = dir
		if out, err := install.CombinedOutput(); err != nil {
			os.Remove(filepath.Join(dir, lock))
			need.Lacks(t, fmt.Sprintf("npm cannot get the library: %s", out))
		}
	}
	return func(program string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "node", append([]string{filepath.Join(dir, program)}, args...)...)
		cmd.Dir, cmd.Env, cmd.Stderr = dir, process.Environ(), os.Stderr
		return cmd
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// keepTranscript keeps the calls of a session, and their answers, for people who want to see one.
func keepTranscript(t *testing.T, name string, lines []byte) {
	t.Helper()
	const dir = "../.build/mcp"
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name+".jsonl"), lines, 0o644)); err != nil {
		t.Error(err)
	}
}

// The libraries refuse answers that do not match the schemas of their tools. One speaks the present
// version of the protocol, and the one before, with sessions; v1, which most programs have, speaks
// the latter.
func TestAClientOfAnotherImplementationLeads(t *testing.T) {
	t.Parallel()
	run := node(t)
	s := inFile(t).with("--mcp").serve(t)
	path := process.Regent.Path(t)
	over := map[string][]string{"http": {s.URL + mcp.Path}, "stdio": {path, "mcp", "--server", s.URL}}
	for how, where := range over {
		for _, mode := range []string{"auto", "legacy", "2026-07-28", "v1"} {
			t.Run(how+" "+mode, func(t *testing.T) {
				out, err := run("client.mjs", append([]string{mode, how}, where...)...).Output()
				keepTranscript(t, how+"-"+mode, out)
				if err != nil {
					t.Fatalf("%v after %s", err, out)
				}
				var refused []string
				answers := 0
				for line := range bytes.Lines(out) {
					var a struct {
						Name, Text string
						Refused    bool
						Answer     any
					}
					if err := json.Unmarshal(line, &a); err != nil {
						t.Fatalf("%v: %s", err, line)
					}
					if answers++; a.Name == "tools" && len(a.Answer.([]any)) != 18 {
						t.Errorf("tools with schemas, annotations and a description: %v", a.Answer)
					}
					if code, _, _ := strings.Cut(a.Text, ":"); a.Refused {
						refused = append(refused, a.Name+" "+code)
					} else if a.Answer == nil {
						t.Errorf("%s has no structured answer: %s", a.Name, line)
					}
				}
				want := []string{"lead LEASE_HELD", "check_token TOKEN_STALE", "leading INVALID_ARGUMENT", "leading INVALID_ARGUMENT"}
				if how == "stdio" { // one process leads an election as one candidate
					want[0] = "lead INVALID_ARGUMENT"
				}
				if diff := cmp.Diff(want, refused); diff != "" || answers != 21 {
					t.Errorf("%d answers; refusals (-want +got)\n%s", answers, diff)
				}
			})
		}
	}
}
