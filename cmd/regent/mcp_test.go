package main

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// openWriter leaves the input of a process open.
type openWriter struct{ *os.File }

func (openWriter) Close() error { return nil }

// modelOf starts "regent mcp", as a program that runs a model does. The returned function ends its
// input.
func modelOf(t *testing.T, env []string, more ...string) (m *sdk.ClientSession, cmd *exec.Cmd, endInput func() error) {
	t.Helper()
	cmd = itself(t, append([]string{"mcp"}, more...)...)
	cmd.Env = append(cmd.Env, env...)
	hears, says, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdin = hears
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	hears.Close()
	t.Cleanup(func() { says.Close() })
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	if m, err = c.Connect(t.Context(), &sdk.IOTransport{Reader: out, Writer: openWriter{says}}, nil); err != nil {
		t.Fatal(err)
	}
	return m, cmd, says.Close
}

func TestAModelLeadsThroughAProcessOfItsOwn(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	for name, end := range map[string]func(*exec.Cmd, func() error) error{
		"end of input": func(_ *exec.Cmd, endInput func() error) error { return endInput() },
		"SIGTERM":      func(cmd *exec.Cmd, _ func() error) error { return cmd.Process.Signal(syscall.SIGTERM) },
		"SIGHUP":       func(cmd *exec.Cmd, _ func() error) error { return cmd.Process.Signal(syscall.SIGHUP) },
		"SIGINT":       func(cmd *exec.Cmd, _ func() error) error { return cmd.Process.Signal(os.Interrupt) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, cmd, endInput := modelOf(t, env, "--candidate", "agent-7")
			election := strings.ToLower(strings.ReplaceAll(name, " ", "-"))
			r, err := m.CallTool(t.Context(), &sdk.CallToolParams{Name: "lead", Arguments: map[string]any{"election": election, "leaseDuration": "1h"}})
			if err != nil || r.IsError || r.StructuredContent.(map[string]any)["candidateId"] != "agent-7" {
				t.Fatalf("lead: %v, %+v", err, r)
			}
			require.NoError(t, end(cmd, endInput))
			_ = m.Wait() // the session has ended with its process
			if err := cmd.Wait(); err != nil {
				t.Errorf("the process ended with %v", err)
			}
			if r := regent(t, env, "status "+election).want(t, exitDone); !strings.Contains(r.out, "vacant") {
				t.Errorf("afterwards: %s", r.out)
			}
		})
	}
}

func TestTheSkillNamesEveryToolAndNoOther(t *testing.T) {
	t.Parallel()
	text := regent(t, nil, "skill").want(t, exitDone).out
	m, _, _ := modelOf(t, []string{"REGENT_SERVER=http://127.0.0.1:1"})
	list, err := m.ListTools(t.Context(), nil)
	require.NoError(t, err)
	there := map[string]bool{}
	for _, tool := range list.Tools {
		there[tool.Name] = true
	}
	named := map[string]bool{}
	_, tools, _ := strings.Cut(text, "\n## Tools\n")
	tools, _, _ = strings.Cut(tools, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(tools, -1) {
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[1], -1) {
			named[name[1]] = true
		}
	}
	if !maps.Equal(there, named) {
		t.Errorf("the skill has the tools %v; there are %v", slices.Sorted(maps.Keys(named)), slices.Sorted(maps.Keys(there)))
	}
}

func TestTheSkillHasItsNameAndCommandsThatAreRight(t *testing.T) {
	t.Parallel()
	text := regent(t, nil, "skill").want(t, exitDone).out
	_, head, _ := strings.Cut(text, "---\n")
	head, _, ok := strings.Cut(head, "\n---\n")
	var about struct{ Name, Description string }
	if err := yaml.Unmarshal([]byte(head), &about); !ok || err != nil || about.Name != "regent" || len(about.Description) < 50 || len(about.Description) > 1024 {
		t.Errorf("%v: %+v", err, about)
	}
	commands := regexp.MustCompile(`(?m)^regent ([^#\n]*)`).FindAllStringSubmatch(text, -1)
	if len(commands) < 5 {
		t.Errorf("%d commands", len(commands))
	}
	for _, line := range commands {
		root := newCLI(system{}).root()
		cmd, rest, err := root.Find(strings.Fields(line[1]))
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err == nil {
			err = cmd.Args(cmd, cmd.Flags().Args())
		}
		if err != nil {
			t.Errorf("%s: %v", line[0], err)
		}
	}
}
