package main

import (
	"strconv"
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

// pidWorker is worker, but prints its PID first, and waits without starting processes.
const pidWorker = `trap 'echo stopping $REGENT_FENCING_TOKEN; exit 7' TERM; sleep 3600 & echo $$; wait`

// quorate starts a server with an election that is read-only a second after a member has gone, and
// a run that leads it. It returns functions by which that member comes and goes, and the command's
// PID.
func quorate(t *testing.T, flags ...string) (r *wrapper, come, leave func(), pid int) {
	t.Helper()
	p := startProcess(t, "--store", "memory:")
	regent(t, p.env, "configure reports --policy", `{"quorum":{"electorate":["ann","bob","cyd"],"need":"majority","grace":"1s"}}`).want(t, exitDone)
	server, err := client.New(client.Config{Server: p.URL})
	require.NoError(t, err)
	come = func() {
		t.Helper()
		join := leadership.JoinRequest{Election: "reports", CandidateID: "bob", Role: leadership.RoleFollower, TTL: 5 * time.Minute}
		if _, err := server.Join(t.Context(), join); err != nil {
			t.Fatal(err)
		}
	}
	leave = func() {
		t.Helper()
		require.NoError(t, server.Leave(t.Context(), leadership.LeaveRequest{Election: "reports", CandidateID: "bob"}))
	}
	come()
	r = startRun(t, p.env, append(append([]string{"reports", "--candidate", "ann", "--lease", "10s"}, flags...), "--", "sh", "-c", pidWorker)...)
	if !r.lines.Scan() {
		t.Fatal(r.logged())
	}
	pid, err = strconv.Atoi(r.lines.Text())
	require.NoError(t, err)
	return r, come, leave, pid
}

func (r *wrapper) logs(t *testing.T, text string) {
	t.Helper()
	machine.Eventually(t, "the log says "+text, func() bool { return strings.Contains(r.logged(), text) })
}

func TestARunStopsItsCommandWhenTheQuorumIsLost(t *testing.T) {
	t.Parallel()
	r, _, leave, _ := quorate(t, "--on-read-only", "stop")
	leave()
	r.says(t, "stopping 1")
	r.ends(t, exitLeadershipLost)
	r.logs(t, "has lost its quorum, and the command was stopped")
}

func TestARunPausesItsCommandWhileTheQuorumIsLost(t *testing.T) {
	t.Parallel()
	r, come, leave, pid := quorate(t, "--on-read-only", "pause")
	leave()
	machine.Eventually(t, "the command is paused", func() bool { return process.Stopped(pid) })
	come()
	machine.Eventually(t, "the command goes on", func() bool { return !process.Stopped(pid) })
	leave()
	machine.Eventually(t, "the command is paused again", func() bool { return process.Stopped(pid) })
	r.Process.Signal(syscall.SIGTERM)
	r.says(t, "stopping 1")
	r.ends(t, 7)
}

func TestARunGoesOnWhileTheQuorumIsLostAndLogsIt(t *testing.T) {
	t.Parallel()
	r, come, leave, pid := quorate(t)
	began := time.Now()
	leave()
	r.logs(t, "the election is read-only")
	if took := time.Since(began); took > leadership.DefaultGrace {
		t.Errorf("that takes %v", took)
	}
	come()
	r.logs(t, "the election is not read-only any more")
	if process.Stopped(pid) || strings.Contains(r.logged(), "paused") {
		t.Errorf("the command was paused:\n%s", r.logged())
	}
}
