package main

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"regent/leadership/wire"
)

// wantOutput compares what a command printed without trailing spaces, which a Go literal cannot
// show.
func wantOutput(t *testing.T, env []string, args, want string) {
	t.Helper()
	got := regent(t, env, args).want(t, exitDone).out
	lines := strings.Split(got, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), strings.Join(lines, "\n")); diff != "" {
		t.Errorf("regent %s (-want +got)\n%s", args, diff)
	}
}

func TestOutputAsTableAndAsJSON(t *testing.T) {
	t.Parallel()
	c := newClock()
	env := append(startServer(t, c), "REGENT_CANDIDATE=agent-1", "REGENT_KEY="+testKey(1))
	regent(t, env, `acquire reports --note monthly --metadata {"address":"10.0.0.7:80"}`).want(t, exitDone)
	wantOutput(t, env, "status reports", `
election       reports
state          held
leader         agent-1
fencing token  1
revision       1
lease          30s
lock delay     0s
expires in     30s
renew in       10s
acquired       2026-03-01T12:00:00Z
note           monthly
metadata       {"address":"10.0.0.7:80"}
`)
	c.advance(2500 * time.Millisecond)
	wantOutput(t, env, "configure backups --lock-delay 5s", `
election       backups
state          vacant
fencing token  0
revision       1
lease          30s
lock delay     5s
`)
	wantOutput(t, env, "list", `
ELECTION  STATE   LEADER   TOKEN  EXPIRES IN  REVISION
backups   vacant  -        0      -           1
reports   held    agent-1  1      27.5s       1
`)
	wantOutput(t, env, "list --prefix rep --output json", `
{"election":"reports","state":"held","leaderId":"agent-1","fencingToken":1,"revision":1,"leaseDuration":"30s","expiresInMs":27500,"renewInMs":7500,"acquiredAt":"2026-03-01T12:00:00Z","lastHeartbeat":"2026-03-01T12:00:00Z","leaseExpiration":"2026-03-01T12:00:30Z","readAt":"2026-03-01T12:00:02.5Z","metadata":{"address":"10.0.0.7:80"},"note":"monthly","configuration":{"leaseDuration":"30s","lockDelay":"0s"}}
`)
	regent(t, env, "release reports --token 1").want(t, exitDone)
	wantOutput(t, env, "history reports", `
REVISION  AT                    TYPE      LEADER   BEFORE   TOKEN
1         2026-03-01T12:00:00Z  acquired  agent-1  -        1
2         2026-03-01T12:00:02Z  released  -        agent-1  1
`)
	wantOutput(t, env, "delete reports", `
election       reports
state          deleted
fencing token  1
revision       3
lease          30s
lock delay     0s
`)
	wantOutput(t, env, "list --prefix nothing", "ELECTION  STATE  LEADER  TOKEN  EXPIRES IN  REVISION\n")
	wantOutput(t, env, "list --prefix nothing --output json", "")
}

func TestALockIsShown(t *testing.T) {
	t.Parallel()
	c := newClock()
	env := append(startServer(t, c), "REGENT_CANDIDATE=a")
	regent(t, env, "configure e --lock-delay 1m").want(t, exitDone)
	regent(t, env, "acquire e").want(t, exitDone)
	c.advance(40 * time.Second)
	// otherwise the server records the end at a time of its own choice
	ticked, err := http.Post(strings.TrimPrefix(env[0], "REGENT_SERVER=")+wire.PathTick, wire.ContentType, nil)
	if err != nil || ticked.StatusCode != http.StatusOK {
		t.Fatalf("a tick: %v, %v", ticked, err)
	}
	ticked.Body.Close()
	wantOutput(t, env, "status e", `
election       e
state          vacant
fencing token  1
revision       3
lease          30s
lock delay     1m0s
locked for     50s
`)
}

func TestMetadataCannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a":"plain é 世"}`:      `{"a":"plain é 世"}`,
		"{\"a\":\"\u009b2J\"}":   `{"a":"\u009b2J"}`,
		"{\"a\":\"\u202e\"}":     `{"a":"\u202e"}`,
		"{\"a\":\"\U000e0041\"}": `{"a":"\udb40\udc41"}`,
		"{\"a\":\"\x7f\"}":       `{"a":"\u007f"}`,
	} {
		if got := printable(in); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// broken is a standard output that fails.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestAFailingStandardOutput(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	for _, c := range []struct {
		name string
		err  error
		code int
		text string
	}{
		{"a reader that has seen enough ends it quietly", &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}, exitDone, ""},
		{"a full disk is an error", syscall.ENOSPC, exitOther, "no space left on device"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, args := range []string{"list", "version", "version --output json", "completion bash"} {
				var stderr strings.Builder
				code := run(t.Context(), strings.Fields(args), system{strings.NewReader(""), broken{c.err}, &stderr, env})
				said := stderr.String()
				if code != c.code || !strings.Contains(said, c.text) || (c.text == "") != (said == "") {
					t.Errorf("%s: exit code %d, stderr %q; want %d, %q", args, code, said, c.code, c.text)
				}
			}
		})
	}
}

func TestADryRunThatFoundDifferencesSaysSoToAReaderThatLeft(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	args := []string{"apply", "--dry-run", "-f", "-"}
	for cause, want := range map[error]int{syscall.EPIPE: exitDiffers, syscall.ENOSPC: exitOther} {
		if code := run(t.Context(), args, system{strings.NewReader("elections: {a: {}}"), broken{cause}, io.Discard, env}); code != want {
			t.Errorf("%v: exit code %d, want %d", cause, code, want)
		}
	}
}

func TestABrokenConnectionIsNotAClosedStandardOutput(t *testing.T) {
	t.Parallel()
	if code := exitCode(syscall.EPIPE); code == exitDone {
		t.Error("EPIPE of a connection counts as done")
	}
	_, err := output{broken{syscall.EPIPE}}.Write(nil)
	if code := exitCode(errors.Join(err)); code != exitDone {
		t.Errorf("EPIPE of standard output: exit code %d", code)
	}
	if n, err := (output{io.Discard}).Write([]byte("abc")); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestThereIsNoColour(t *testing.T) {
	t.Parallel()
	env := append(startServer(t, newClock()), "REGENT_CANDIDATE=a", "TERM=xterm-256color", "CLICOLOR_FORCE=1")
	for _, args := range []string{"acquire e", "list", "history e", "--help", "nope"} {
		if r := regent(t, env, args); strings.Contains(r.out+r.err, "\x1b") {
			t.Errorf("regent %s: %q", args, r.out+r.err)
		}
	}
}
