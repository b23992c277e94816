package terraform

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/test/process"
)

// ask runs regent with no environment but env, and returns its output.
func ask(t *testing.T, env []string, args ...string) string {
	t.Helper()
	program := process.Regent.Path(t) // which may build it
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append([]string{"HOME=" + t.TempDir()}, env...)
	out, _ := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("regent %s does not end; it said: %s", strings.Join(args, " "), out)
	}
	return string(out)
}

// setsWhatTheBinaryReads checks that serve knows each variable and accepts each value.
func (p plan) setsWhatTheBinaryReads(t *testing.T) {
	t.Helper()
	for _, s := range p.services() {
		env := p.environment(s)
		areKnown(t, "serve", maps.Keys(env))
		p.starts(t, s, env)
	}
	var agent map[string]string
	// else it has an address that is not known yet
	if err := json.Unmarshal(p.outputs["agent_environment"], &agent); err == nil {
		areKnown(t, "acquire", maps.Keys(agent))
	}
}

// areKnown checks that the command's help names each of Regent's variables.
func areKnown(t *testing.T, command string, variables iter.Seq[string]) {
	t.Helper()
	known := regexp.MustCompile(`\bREGENT_[A-Z_]+\b`).FindAllString(ask(t, nil, command, "--help"), -1)
	for name := range variables {
		if strings.HasPrefix(name, "REGENT_") && !slices.Contains(known, name) {
			t.Errorf("Terraform sets %s, of which regent %s --help knows nothing", name, command)
		}
	}
}

// environment is that of a service's container.
func (p plan) environment(service resource) map[string]string {
	env := map[string]string{}
	all, _ := in(service.Values, "template", 0, "containers", 0, "env").([]any)
	for _, v := range all {
		value, known := in(v, "value").(string)
		if !known && in(v, "name") == "REGENT_PEERS" { // before there are any
			value = regexp.MustCompile(`=[^,]+`).ReplaceAllString(p.audiencesOfPeers(all), "=https://regent.example.com")
		}
		env[in(v, "name").(string)] = value
	}
	return env
}

// audiencesOfPeers is known when their addresses are not.
func (p plan) audiencesOfPeers(environment []any) string {
	for _, v := range environment {
		if in(v, "name") == "REGENT_PEER_AUDIENCES" {
			return in(v, "value").(string)
		}
	}
	return ""
}

// starts runs the service as Cloud Run would, but on an address in use: by the time it says so, it
// has read all its settings and has called no other service.
func (p plan) starts(t *testing.T, service resource, env map[string]string) {
	t.Helper()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	access := filepath.Join(t.TempDir(), filepath.Base(env["REGENT_ACCESS"]))
	write(t, access, p.access(t))
	set := []string{"K_SERVICE=regent", "K_REVISION=regent-00001", "OTEL_SDK_DISABLED=true", "REGENT_LISTEN=" + taken.Addr().String()}
	for name, value := range env {
		if name == "REGENT_ACCESS" {
			value = access
		}
		if strings.HasPrefix(name, "REGENT_") {
			set = append(set, name+"="+value)
		}
	}
	args := list(in(service.Values, "template", 0, "containers", 0, "args"))
	if said := ask(t, set, args...); !strings.Contains(said, "address already in use") {
		t.Errorf("with the environment of %s regent %s says, before it listens: %s", service.Address, strings.Join(args, " "), said)
	}
}

func TestExamplesDeclareWhatTheRunbookNeeds(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile("terraform (?:apply -(var)|(output)(?: -raw)?) ([a-z_]+)").FindAllStringSubmatch(read(t, repository+"/terraform/README.md"), -1)
	if len(named) < 5 {
		t.Fatalf("found %d variables and outputs only", len(named))
	}
	for _, example := range examples {
		folder := repository + "/terraform/examples/" + example
		declared := read(t, folder+"/variables.tf") + read(t, folder+"/outputs.tf")
		for _, n := range named {
			kind := map[string]string{"var": "variable", "output": "output"}[n[1]+n[2]]
			if !strings.Contains(declared, kind+` "`+n[3]+`" {`) {
				t.Errorf("the runbook says %q, and the example %s has no such %s", n[0], example, kind)
			}
		}
	}
}

func TestRunbookNamesExistingCommands(t *testing.T) {
	t.Parallel()
	code := regexp.MustCompile("(?s)```sh\n.*?```|`[^`\n]+`").FindAllString(read(t, repository+"/terraform/README.md")+read(t, repository+"/"+runbook), -1)
	commands := regexp.MustCompile("\\bregent ((?:(?:admin|term) )?[a-z]+)([^`\n]*)").FindAllStringSubmatch(strings.Join(code, "\n"), -1)
	if len(commands) < 15 {
		t.Fatalf("found %d commands only", len(commands))
	}
	for _, c := range commands {
		help := ask(t, nil, append(strings.Fields(c[1]), "--help")...)
		if !strings.Contains(help, "regent "+c[1]) || strings.Contains(help, "unknown command") {
			t.Errorf("the runbook says %q, and there is no such command: %s", c[0], help)
			continue
		}
		for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(c[2], -1) {
			if !strings.Contains(help, flag+" ") {
				t.Errorf("the runbook says %q, and the command has no %s", c[0], flag)
			}
		}
	}
}
