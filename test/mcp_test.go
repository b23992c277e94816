package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/emulators/need"
	"regent/httpapi/mcp"
	"regent/test/process"
)

// node returns the command that runs a program of test/model, with its library, which npm gets once
// into .build.
func node(t *testing.T) func(program string, args ...string) *exec.Cmd {
	t.Helper()
	need.Programs(t, "node", "npm")
	dir, err := filepath.Abs("../.build/model")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, name := range []string{"package.json", "client.mjs"} {
		copyFile(t, filepath.Join("model", name), filepath.Join(dir, name))
	}
	const lock = "package-lock.json"
	wanted, err := os.ReadFile(filepath.Join("model", lock))
	require.NoError(t, err)
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
	require.NoError(t, err)
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
		for _, mode := range map[string][]string{"http": {"auto", "legacy", "v1"}, "stdio": {"auto"}}[how] {
			t.Run(how+" "+mode, func(t *testing.T) {
				t.Parallel()
				out, err := run("client.mjs", append([]string{mode, how}, where...)...).Output()
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
					if answers++; a.Name == "tools" && len(a.Answer.([]any)) != 26 {
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
