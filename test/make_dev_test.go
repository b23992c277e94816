package test

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/emulators"
	"regent/test/process"
)

// The page is run by itself: make dev in one terminal, and all else in another.
func TestDevelopingWithoutTheCloudIsAsPrinted(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../emulators/README.md")
	require.NoError(t, err)
	session := commandsOf(blocksOf(string(text), "console"))
	if len(session) < 6 || session[0].typed != "make dev" {
		t.Fatalf("the page has the commands %q", session)
	}
	dir := made(t)
	m := startMakeDev(t, dir)
	urls := regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/ui/`).FindAllStringSubmatch(m.said, -1)
	if len(urls) != 2 {
		t.Fatalf("no two addresses in\n%s", m.said)
	}
	play(t, session[1:], process.Environ(), strings.NewReplacer("http://127.0.0.1:8080", urls[0][1], "http://127.0.0.1:8081", urls[1][1], ".build/", dir+"/"))
	m.interrupt(t)
}

// makeDev is a running make dev, in a process group of its own, as in a terminal.
type makeDev struct {
	*exec.Cmd
	lines *bufio.Scanner
	said  string
}

// startMakeDev runs make dev on free ports, with the emulators of this test process, until it is
// ready.
func startMakeDev(t *testing.T, build string) *makeDev {
	t.Helper()
	m := &makeDev{Cmd: exec.Command("make", "-C", "..", "dev", "BUILD="+build, "LISTEN=127.0.0.1:0", "PROJECT="+emulators.Name(t))}
	m.Env = process.Environ("FIRESTORE_EMULATOR_HOST="+emulators.Firestore(t), "PUBSUB_EMULATOR_HOST="+emulators.PubSub(t))
	m.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, in, err := os.Pipe()
	require.NoError(t, err)
	m.Stdout, m.Stderr, m.lines = in, in, bufio.NewScanner(out)
	err = m.Start()
	in.Close()
	require.NoError(t, err)
	t.Cleanup(func() {
		if m.ProcessState == nil {
			syscall.Kill(-m.Process.Pid, syscall.SIGKILL)
			m.Wait()
		}
		out.Close()
	})
	m.read("Ctrl-C ends everything")
	if !strings.Contains(m.said, "Ctrl-C ends everything") {
		t.Fatalf("make dev ended:\n%s", m.said)
	}
	return m
}

// read reads the output until a line has the text, or to its end.
func (m *makeDev) read(text string) {
	for m.lines.Scan() {
		m.said += m.lines.Text() + "\n"
		if strings.Contains(m.lines.Text(), text) {
			return
		}
	}
}

// interrupt presses Ctrl-C.
func (m *makeDev) interrupt(t *testing.T) {
	t.Helper()
	require.NoError(t, syscall.Kill(-m.Process.Pid, syscall.SIGINT))
	m.read("stopped; nothing is left running")
	if err := m.Wait(); !strings.Contains(m.said, "stopped; nothing is left running") {
		t.Errorf("after Ctrl-C: %v\n%s", err, m.said)
	}
}
