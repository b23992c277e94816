package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/emulators"
	"regent/emulators/need"
)

// TestMain lets this binary be the command under test: exit statuses and signals need a process.
func TestMain(m *testing.M) {
	if os.Getenv("EMULATORS_TEST_COMMAND") != "" {
		main()
	}
	os.Exit(m.Run())
}

// command returns the command, ready to start, with additional variables.
func command(env []string, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd = exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "EMULATORS_TEST_COMMAND=1", "REGENT_SKIPPED_LOG=", "REGENT_REQUIRE_EMULATORS=", "REGENT_EMULATORS=env")
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

func status(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// one returns an environment in which the only emulator of --only spanner already runs.
func one(t *testing.T) []string {
	t.Helper()
	return []string{"SPANNER_EMULATOR_HOST=" + emulators.Spanner(t)}
}

// none returns an environment without any emulator.
func none(t *testing.T) []string {
	t.Helper()
	return []string{"SPANNER_EMULATOR_HOST=", "REGENT_EMULATORS=env"}
}

func TestExitStatusIsTheCommands(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want int
		says string // on standard error; "" for no output
	}{
		{[]string{"--only", "spanner", "--", "true"}, 0, ""},
		{[]string{"--only", "spanner", "--", "sh", "-c", "exit 7"}, 7, ""},
		{[]string{"--only=spanner", "sh", "-c", "kill -KILL $$"}, 128 + 9, ""},
		{[]string{"--only", "spanner", "--", "no-such-command"}, 1, "no-such-command"},
		{[]string{"--only", "bigtable", "--", "true"}, 1, "choose from firestore, spanner, pubsub"},
		{[]string{"--bogus"}, 1, "see emulators --help"},
		{[]string{"--help"}, 0, ""},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			cmd, _, stderr := command(one(t), tt.args...)
			if got := status(t, cmd); got != tt.want {
				t.Errorf("exit status %d, want %d", got, tt.want)
			}
			if said := stderr.String(); !strings.Contains(said, tt.says) || (tt.says == "") != (said == "") {
				t.Errorf("standard error %q, want %q in it", said, tt.says)
			}
		})
	}
}

func TestCommandGetsTheHostAndNoForcedSource(t *testing.T) {
	env := one(t)
	cmd, stdout, _ := command(env, "--only", "spanner", "--", "sh", "-c", `echo "$SPANNER_EMULATOR_HOST ${REGENT_EMULATORS-unset}"`)
	if got := status(t, cmd); got != 0 {
		t.Fatalf("exit status %d", got)
	}
	_, host, _ := strings.Cut(env[0], "=")
	if want := host + " unset\n"; stdout.String() != want {
		t.Errorf("the command saw %q, want %q", stdout, want)
	}
}

func TestSkippedTestsAreListedAtTheEnd(t *testing.T) {
	cmd, _, stderr := command(one(t), "--only", "spanner", "--", "sh", "-c", `for t in "b.test TestTwo/x: why" "b.test TestTwo/y/z: why" "a.test TestOne: why" "a.test TestOne: why: else"; do echo "$t"; done >>"$REGENT_SKIPPED_LOG"; exit 3`)
	if got := status(t, cmd); got != 3 {
		t.Errorf("exit status %d, want the command's 3", got)
	}
	if want := "emulators: tests that proved nothing: 4\nwhy\n  2: a.test TestOne, b.test TestTwo (2)\nwhy: else\n  1: a.test TestOne\n"; stderr.String() != want {
		t.Errorf("standard error %q, want %q", stderr, want)
	}
}

func TestWithoutEmulatorsTheCommandRunsAfterAWarning(t *testing.T) {
	cmd, stdout, stderr := command(none(t), "--only", "spanner", "--", "echo", "ran")
	if got := status(t, cmd); got != 0 || stdout.String() != "ran\n" {
		t.Errorf("exit status %d, output %q, want the command run", got, stdout)
	}
	if said := stderr.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "RUNNING WITHOUT Spanner") {
		t.Errorf("standard error %q, want one loud line", said)
	}
}

func TestMissingEmulatorsAreAnErrorIfRequiredOrWithoutACommand(t *testing.T) {
	for _, tt := range []struct {
		env  string
		args []string
	}{
		{"REGENT_REQUIRE_EMULATORS=1", []string{"--only", "spanner", "--", "echo", "ran"}},
		{"REGENT_REQUIRE_EMULATORS=", []string{"--only", "spanner"}},
	} {
		cmd, stdout, stderr := command(append(none(t), tt.env), tt.args...)
		if got := status(t, cmd); got != 1 || stdout.Len() > 0 {
			t.Errorf("%s %v: exit status %d, output %q, want 1 and nothing", tt.env, tt.args, got, stdout)
		}
		if !strings.Contains(stderr.String(), "Install the Google Cloud SDK") {
			t.Errorf("%s %v: standard error %q does not say what to install", tt.env, tt.args, stderr)
		}
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	for _, s := range passedOn {
		script := fmt.Sprintf(`trap 'echo got; exit 9' %d; echo up; while :; do sleep 0.05; done`, int(s.(syscall.Signal)))
		cmd, _, _ := command(one(t), "--only", "spanner", "--", "sh", "-c", script)
		lines := startReading(t, cmd)
		wantLine(t, lines, "up")
		require.NoError(t, cmd.Process.Signal(s))
		wantLine(t, lines, "got")
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != 9 {
			t.Errorf("%v: exit status %d, want the command's 9", s, got)
		}
	}
}

func TestWithoutACommandTheEmulatorsStayUntilASignal(t *testing.T) {
	if _, err := exec.LookPath("gcloud"); err != nil {
		need.Lacks(t, "no gcloud to start an emulator of our own that ends with us")
	}
	cmd, _, _ := command([]string{"SPANNER_EMULATOR_HOST=", "REGENT_EMULATORS="}, "--only", "spanner")
	host := strings.TrimPrefix(wantLine(t, startReading(t, cmd), "export SPANNER_EMULATOR_HOST="), "export SPANNER_EMULATOR_HOST=")
	dial(t, host, true)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); err != nil {
		t.Errorf("wait: %v, want exit status 0", err)
	}
	dial(t, host, false)
}

func startReading(t *testing.T, cmd *exec.Cmd) *bufio.Scanner {
	t.Helper()
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return bufio.NewScanner(out)
}

func wantLine(t *testing.T, lines *bufio.Scanner, prefix string) string {
	t.Helper()
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), prefix) {
		t.Fatalf("printed %q (%v), want %q", lines.Text(), lines.Err(), prefix)
	}
	return lines.Text()
}

func dial(t *testing.T, host string, want bool) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", host, time.Second)
	if err == nil {
		conn.Close()
	}
	if (err == nil) != want {
		t.Errorf("dial %s: %v, want an open port: %v", host, err, want)
	}
}
