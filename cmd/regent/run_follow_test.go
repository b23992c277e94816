package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/test/machine"
)

// replica is a command that follows a leader: it writes a line when it begins and when it ends,
// which takes as long as a file says.
const replica = `trap 'sleep $(cat $LOG.takes); echo ended $REGENT_LEADER_ID >>$LOG; exit' TERM; echo "follows $REGENT_LEADER_ID $REGENT_LEADER_TOKEN at $REGENT_LEADER_ADDRESS" >>$LOG; while :; do sleep 0.02; done`

// followLog is the file that commands which follow write to.
type followLog string

func (l followLog) becomes(t *testing.T, r *wrapper, want ...string) {
	t.Helper()
	text := strings.Join(want, "\n") + "\n"
	machine.Eventually(t, "the log becomes\n"+text, func() bool {
		got, _ := os.ReadFile(string(l))
		if !strings.HasPrefix(text, string(got)) {
			t.Fatalf("it is\n%s; want\n%s\n%s", got, text, r.logged())
		}
		return string(got) == text
	})
}

func TestACommandFollowsEachLeaderAndNeverRunsBesideTheOwnCommand(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--store", "memory:")
	log := followLog(filepath.Join(t.TempDir(), "log"))
	ending := func(takes string) {
		t.Helper()
		require.NoError(t, os.WriteFile(string(log)+".takes", []byte(takes), 0o600))
	}
	ending("0.1")
	leads := func(id, metadata, says string) *wrapper {
		t.Helper()
		r := startRun(t, p.env, "reports", "--candidate", id, "--metadata", metadata, "--", "sh", "-c", worker)
		if says != "" {
			r.says(t, says)
		}
		return r
	}
	order := func(args string) {
		t.Helper()
		regent(t, p.env, args+" --reason test").want(t, exitDone)
	}
	ann := leads("ann", `{"address":"10.0.0.7:80"}`, "leads 1")
	bob := startRun(t, append(p.env, "LOG="+string(log)), "reports", "--candidate", "bob", "--grace", "9s", "--follow-command", replica, "--",
		"sh", "-c", "echo leads >>$LOG; "+worker)
	want := []string{"follows ann 1 at 10.0.0.7:80"}
	log.becomes(t, bob, want...)

	order("assign reports --candidate cyd --for 1h")
	cyd := leads("cyd", `{"address":["10.0.0.8:80"]}`, "")
	ann.Process.Signal(syscall.SIGTERM)
	cyd.says(t, "leads 2")
	want = append(want, "ended ann", "follows cyd 2 at ")
	log.becomes(t, bob, want...)

	order("pause reports --for 1h")
	cyd.Process.Signal(syscall.SIGTERM)
	want = append(want, "ended cyd")
	log.becomes(t, bob, want...)
	order("assign reports --candidate dan --for 1h")
	order("resume reports")
	dan := leads("dan", "{}", "leads 3")
	want = append(want, "follows dan 3 at ")
	log.becomes(t, bob, want...)

	order("assign reports --candidate bob --for 1h")
	ending("4") // the own command could have begun meanwhile
	dan.Process.Signal(syscall.SIGTERM)
	bob.says(t, "leads 4")
	log.becomes(t, bob, append(want, "ended dan", "leads")...)
	bob.Process.Signal(syscall.SIGTERM)
	bob.says(t, "stopping 4")
	bob.ends(t, 7)
}

func TestACommandThatFollowsIsStartedAgain(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--store", "memory:")
	log := followLog(filepath.Join(t.TempDir(), "log"))
	ann := startRun(t, p.env, "reports", "--candidate", "ann", "--", "sh", "-c", worker)
	ann.says(t, "leads 1")
	bob := startRun(t, append(p.env, "LOG="+string(log), "REGENT_KEY="+testKey(1)), "reports", "--follow-command",
		`test -z "$REGENT_KEY$REGENT_FENCING_TOKEN" && echo follows >>$LOG; exit 9`, "--", "sh", "-c", worker)
	machine.Eventually(t, "it has run three times", func() bool {
		text, _ := os.ReadFile(string(log))
		return strings.HasPrefix(string(text), "follows\nfollows\nfollows\n")
	})
	if text := bob.logged(); !strings.Contains(text, "the command that follows the leader has ended") || !strings.Contains(text, "code=9") && !strings.Contains(text, `"code":9`) {
		t.Errorf("the log does not say so:\n%s", text)
	}
	bob.Process.Signal(syscall.SIGTERM)
	bob.ends(t, exitSignal+int(syscall.SIGTERM))
}
