package main

import (
	"strings"
	"testing"
)

func TestInvalidRunIsRefusedBeforeItWaits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"run", "run needs a command, after --"},
		{"run e", "run needs a command, after --"},
		{"run e true", "run needs a command, after --"},
		{"run e --", "run needs a command, after --"},
		{"run -- true", "run takes one argument"},
		{"run e f -- true", "run takes one argument"},
		{"run E -- true", "a-z, 0-9"},
		{"run e --candidate a/b -- true", "a candidate's id"},
		{"run e --lease 999ms -- true", "from 1s to 24h"},
		{"run e --wait -1s -- true", "from 0s to 24h0m0s, or forever"},
		{"run e --metadata [1] -- true", "must be a JSON object"},
		{"run e --grace 5 -- true", "a number and a unit"},
		{"run e --grace -1s -- true", "from 0s to 8h"},
		{"run e --grace 400ms --lease 1s -- true", "at most a third of the lease"},
		{"run e --no-wait --wait 5s -- true", "--no-wait or --wait, not both"},
		{"run e --key x -- true", "unknown flag: --key"},
		{"run e --output json -- true", "unknown flag: --output"},
		{"run e --server example.com -- true", "--server or REGENT_SERVER"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			r := regent(t, nil, c.args).want(t, exitUsage)
			lines := strings.Split(r.err, "\n")
			if r.out != "" || len(lines) != 3 || !strings.Contains(lines[0], c.want) || lines[1] != "Run 'regent run --help' for usage." {
				t.Errorf("stdout %q, stderr\n%swant one line with %q, and a hint", r.out, r.err, c.want)
			}
		})
	}
}

func TestMissingCommandIsRefusedBeforeItWaits(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int{
		"run e -- no-such-command":     exitNotFound,
		"run e -- /no/such/command":    exitNotFound,
		"run e -- /etc":                exitNotExecutable,
		"run e -- /etc/passwd":         exitNotExecutable,
		"run e --restart -- /no/thing": exitNotFound,
	} {
		if r := regent(t, nil, args).want(t, want); strings.Count(r.err, "\n") != 1 {
			t.Errorf("%s: %q, want one line", args, r.err)
		}
	}
}

func TestTheHelpOfRunHasItsExitCodes(t *testing.T) {
	t.Parallel()
	r := regent(t, nil, "run --help").want(t, exitDone)
	for _, want := range []string{"120  leadership was lost", "121  the lease could not be renewed", "122  no guard could be started", "125  ", "126  ", "127  ", "REGENT_DEADLINE_FILE", "CLOCK_BOOTTIME"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
	}
}
