package examples_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/client"
	"regent/test/machine"
	"regent/test/process"
)

// Whatever runs a command says how it has ended. Three that fail park the election; an operator
// lets it go on.
func TestACommandThatFailsForEachLeaderParksItsElection(t *testing.T) {
	t.Parallel()
	server := serve(t)
	c, err := client.New(client.Config{Server: server})
	require.NoError(t, err)
	config := leadership.Config{Term: leadership.TermPolicy{Series: leadership.SeriesPolicy{Failures: 3, Within: time.Hour}}}
	if _, err := c.Do(t.Context(), leadership.Configure{Election: "poison", Config: config}); err != nil {
		t.Fatal(err)
	}
	run := func(code int, name string, args ...string) (said string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		if name == "regent" {
			cmd = process.Regent.Command(t, args...)
		}
		cmd.Env = append(cmd.Environ(), "REGENT_SERVER="+server)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) || cmd.ProcessState.ExitCode() != code {
			t.Errorf("%s %q: exit code %d, %v, want %d\n%s", name, args, cmd.ProcessState.ExitCode(), err, code, out.String())
		}
		return out.String()
	}
	run(2, "regent", "run", "poison", "--", "sh", "-c", "exit 2")
	run(0, "bash", "agent.sh", "poison", "--", "true")
	run(3, "bash", "agent.sh", "poison", "--", "sh", "-c", "exit 3")
	run(4, "bash", "agent.sh", "poison", "--", "sh", "-c", "exit 4")
	if said := run(3, "regent", "run", "poison", "--no-wait", "--", "true"); !strings.Contains(said, "is parked: 3 terms have failed within 1h") {
		t.Errorf("the next one hears: %s", said)
	}
	if said := run(0, "regent", "why", "poison", "any"); !strings.Contains(said, "3 terms have failed within 1h, the last with fencing token 4") {
		t.Errorf("it is explained so: %s", said)
	}
	if said := run(0, "regent", "status", "poison"); !strings.Contains(said, "parked         3 terms have failed within 1h") {
		t.Errorf("its status: %s", said)
	}
	if said := run(0, "regent", "why", "poison"); !strings.Contains(said, "If it shall go on, approve fencing token 4.") {
		t.Errorf("it is explained so, to operators: %s", said)
	}
	run(0, "regent", "approve", "poison", "--token", "4", "--reason", "the input is mended")
	run(0, "bash", "agent.sh", "poison", "--", "true")
	run(0, "regent", "run", "poison", "--", "true")
	events, err := c.Events(t.Context(), leadership.EventsRequest{Election: "poison"})
	require.NoError(t, err)
	var got []string
	for _, e := range events {
		if e.Type != leadership.EventAcquired && e.Type != leadership.EventConfigured {
			got = append(got, strings.TrimSpace(string(e.Type)+" "+string(e.ReadDetail().Outcome)+" "+e.Reason))
		}
	}
	want := []string{
		"released failed exit status 2", "released done", "released failed exit status 3", "released failed exit status 4",
		"parked  3 terms have failed within 1h, the last with fencing token 4", "approved  the input is mended", "released done", "released done",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the history is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// An agent that is told to end while it waits for another one says nothing of the server.
func TestAnAgentThatIsInterruptedWhileItWaitsBlamesNoServer(t *testing.T) {
	t.Parallel()
	server := serve(t)
	begun := filepath.Join(t.TempDir(), "begun")
	agent(t, server, nil, "sh", "-c", `touch "$0"; exec sleep 600`, begun)
	machine.Eventually(t, "the first leads", func() bool { _, err := os.Stat(begun); return err == nil })
	second := start(t, []string{"REGENT_SERVER=" + server, "REGENT_CANDIDATE=bob"}, "reports", "--", "true")
	c, err := client.New(client.Config{Server: server})
	require.NoError(t, err)
	machine.Eventually(t, "the second waits in line", func() bool {
		x, err := c.Explain(t.Context(), leadership.ExplainRequest{Election: "reports", CandidateID: "bob"})
		return err == nil && slices.ContainsFunc(x.Causes, func(cause leadership.Cause) bool { return cause.Code == leadership.ReasonInLine })
	})
	second.Process.Signal(syscall.SIGTERM)
	<-second.Gone
	if log := second.Log.String(); strings.Contains(log, "does not answer") {
		t.Errorf("it says\n%s", log)
	}
}

// An agent that is told to end has been stopped, and has not failed.
func TestAnAgentThatIsInterruptedHasNotFailed(t *testing.T) {
	t.Parallel()
	server := serve(t)
	begun := filepath.Join(t.TempDir(), "begun")
	cmd := exec.CommandContext(t.Context(), "bash", file, "jobs", "--", "sh", "-c", `touch "$0"; exec sleep 600`, begun)
	cmd.Env = append(cmd.Environ(), "REGENT_SERVER="+server)
	agent := process.Start(t, cmd)
	machine.Eventually(t, "the command has begun", func() bool { _, err := os.Stat(begun); return err == nil })
	agent.Process.Signal(syscall.SIGTERM)
	<-agent.Gone
	c, err := client.New(client.Config{Server: server})
	require.NoError(t, err)
	events, err := c.Events(t.Context(), leadership.EventsRequest{Election: "jobs"})
	if n := len(events); err != nil || n != 2 || events[1].ReadDetail().Outcome != leadership.OutcomeStopped {
		t.Errorf("the history is %+v, %v", events, err)
	}
}
