package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/emulators"
	"regent/emulators/need"
	"regent/leadership/client"
	"regent/test/machine"
	"regent/test/process"
)

// TestMain lets this binary be the command under test: signals need a process.
func TestMain(m *testing.M) {
	if os.Getenv("DEV_TEST_COMMAND") != "" {
		main()
		os.Exit(0)
	}
	machine.Main(m)
}

// running is a running make dev.
type running struct {
	*exec.Cmd
	dir   string // of the logs
	lines *bufio.Scanner
	said  string
}

// start starts the command with the emulators of this test process, and a project of its own.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	env := []string{"FIRESTORE_EMULATOR_HOST=" + emulators.Firestore(t), "PUBSUB_EMULATOR_HOST=" + emulators.PubSub(t)}
	if slices.Contains(args, "spanner") {
		env = append(env, "SPANNER_EMULATOR_HOST="+emulators.Spanner(t))
	}
	return startWith(t, env, append([]string{"-project", emulators.Name(t)}, args...)...)
}

// startAlone starts the command with its own emulators.
func startAlone(t *testing.T, args ...string) *running {
	t.Helper()
	emulators.Firestore(t) // or skip
	if _, err := exec.LookPath("gcloud"); err != nil {
		need.Lacks(t, "no gcloud to start emulators that end with make dev")
	}
	return startWith(t, []string{"FIRESTORE_EMULATOR_HOST=", "PUBSUB_EMULATOR_HOST=", "REGENT_EMULATORS=gcloud"}, args...)
}

func startWith(t *testing.T, env []string, args ...string) *running {
	t.Helper()
	return startBy(t, nil, env, args...)
}

// startBy starts the command by another command.
func startBy(t *testing.T, by, env []string, args ...string) *running {
	t.Helper()
	p := &running{dir: t.TempDir()}
	command := slices.Concat(by, []string{os.Args[0], "-regent", process.Regent.Path(t), "-dir", p.dir, "-listen", "127.0.0.1:0"}, args)
	p.Cmd = exec.Command(command[0], command[1:]...)
	p.Env = append(append(os.Environ(), env...), "DEV_TEST_COMMAND=1")
	out, in, err := os.Pipe()
	require.NoError(t, err)
	p.Stdout, p.Stderr, p.lines = in, in, bufio.NewScanner(out)
	err = process.Begin(p.Cmd)
	in.Close()
	require.NoError(t, err)
	t.Cleanup(func() {
		p.Process.Kill()
		io.Copy(io.Discard, out) // until the last process that holds it has ended
		p.Wait()
		out.Close()
	})
	return p
}

// started is in the line that ends the start.
const started = "Ctrl-C ends everything"

// await reads the output until a line has the text. It fails if the line that ends the start comes
// first.
func (p *running) await(t *testing.T, text string) {
	t.Helper()
	p.read(t, text, started)
}

// read reads the output until a line has the text. It fails if a line with but comes first.
func (p *running) read(t *testing.T, text, but string) {
	t.Helper()
	for p.lines.Scan() {
		p.said += p.lines.Text() + "\n"
		if strings.Contains(p.lines.Text(), text) {
			return
		}
		if strings.Contains(p.lines.Text(), but) {
			break
		}
	}
	t.Fatalf("it did not say %q:\n%s", text, p.said)
}

// ready waits until both instances are ready, and returns their URLs.
func (p *running) ready(t *testing.T) (first, second string) {
	t.Helper()
	p.await(t, started)
	var urls []string
	for line := range strings.Lines(p.said) {
		if url, log, is := strings.Cut(strings.TrimSpace(line), "/ui/"); is && strings.HasSuffix(strings.TrimSpace(log), ".log") {
			urls = append(urls, url[strings.Index(url, "http"):])
		}
	}
	if len(urls) != 2 {
		t.Fatalf("no two addresses in\n%s", p.said)
	}
	return urls[0], urls[1]
}

// end sends a signal, and requires a clean end.
func (p *running) end(t *testing.T, s os.Signal) {
	t.Helper()
	require.NoError(t, p.Process.Signal(s))
	p.read(t, "stopped; nothing is left running", "make dev:")
	if err := p.Wait(); err != nil {
		t.Errorf("after %v: %v, want exit status 0:\n%s", s, err, p.said)
	}
}

// pid returns the process id of an instance.
func (p *running) pid(t *testing.T, number int) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, fmt.Sprintf("instance-%d.pid", number)))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return pid
}

// wantGone waits until a process has ended.
func wantGone(t *testing.T, pid int) {
	t.Helper()
	machine.Eventually(t, fmt.Sprintf("process %d ends", pid), func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ") // a zombie, whose parent has not reaped it
	})
}

// emulatorOf returns the processes of an emulator.
func emulatorOf(t *testing.T, host string) (pids []int) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		need.Lacks(t, "no /proc here to look for the processes of an emulator")
	}
	_, port, _ := strings.Cut(host, ":")
	for _, name := range lines {
		text, _ := os.ReadFile(name)
		if strings.Contains(string(text), "emulator") && strings.Contains(string(text), port) {
			pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		t.Fatalf("no process has the port %s among its arguments", port)
	}
	return pids
}

// host returns the address of an emulator, from the file of variables.
func (p *running) host(t *testing.T, kind emulators.Kind) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "env"))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), kind.Variable()+"=")
	host, _, _ := strings.Cut(rest, "\n")
	return host
}

func newClient(t *testing.T, url string) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{Server: url})
	require.NoError(t, err)
	return c
}
