package test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"regent/leadership/client"
	"regent/test/load"
	"regent/test/lockset"
	"regent/test/machine"
)

// Programs, each built once for all tests of this package.
var (
	regent = built("regent", "regent/cmd/regent")
	mortal = built("mortal", "-tags", "failpoints", "regent/cmd/regent") // regent with failpoints
)

// binaries is their folder.
var binaries = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "regent-test-*") })

func built(name string, args ...string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		dir, err := binaries()
		if err != nil {
			return "", err
		}
		path := filepath.Join(dir, name)
		cmd := exec.Command("go", append([]string{"build", "-o", path}, args...)...)
		cmd.Stderr = os.Stderr
		return path, cmd.Run()
	})
}

func TestMain(m *testing.M) {
	if load.Main() || lockset.Main() {
		return
	}
	machine.Main(m, func() {
		if dir, err := binaries(); err == nil {
			os.RemoveAll(dir)
		}
	})
}

// invoke builds a program and returns a command of it, with the environment of a program under
// test.
func invoke(t testing.TB, program func() (string, error), env []string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = environ(env...)
	return cmd
}

// server is a running `regent serve`.
type server struct {
	cmd    *exec.Cmd
	URL    string
	client *client.Client
	log    *syncBuffer
	gone   chan struct{} // closed once the process has ended
}

// serve starts the program on a free port and waits until it serves. It is killed when the test
// ends.
func serve(t testing.TB, env []string, args ...string) *server {
	t.Helper()
	return start(t, invoke(t, regent, env, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...))
}

// environ returns the environment of a program under test: ours, without variables that would
// change its behaviour, and with extra.
func environ(extra ...string) []string {
	ours := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasSuffix(name, "_EMULATOR_HOST") || strings.HasPrefix(name, "REGENT_") || strings.HasPrefix(name, "MAKE") || name == "PORT"
	})
	return append(ours, extra...)
}

// start starts a command that serves, in a process group of its own, and waits until it does.
func start(t testing.TB, cmd *exec.Cmd) *server {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{cmd: cmd, log: &syncBuffer{}, gone: make(chan struct{})}
	address := make(chan string, 1)
	go func() {
		s.watch(stderr, address)
		cmd.Wait()
		close(s.gone)
	}()
	t.Cleanup(func() {
		s.kill()
		s.requireNoSecrets(t)
	})
	select {
	case a := <-address:
		s.URL = "http://" + a
	case <-s.gone:
		t.Fatalf("%v ended:\n%s", cmd, s.log)
	case <-t.Context().Done():
		t.Fatalf("%v does not start:\n%s", cmd, s.log)
	}
	if s.client, err = client.New(client.Config{Server: s.URL, HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}}); err != nil {
		t.Fatal(err)
	}
	return s
}

// secret matches a key, and the beginning of a caller's token.
var secret = regexp.MustCompile(`(^|[^A-Za-z0-9_/-])([A-Za-z0-9_-]{43}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*)($|[^A-Za-z0-9_-])`)

// requireNoSecrets fails if the server's log has a key or the token of a caller.
func (s *server) requireNoSecrets(t testing.TB) {
	if found := secret.FindString(s.log.String()); found != "" {
		t.Errorf("the server's log has a secret in it: %s", found)
	}
}

// watch keeps the log and finds the address in it.
func (s *server) watch(stderr io.Reader, address chan<- string) {
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		s.log.add(lines.Text())
		var line struct{ Message, Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Message+line.Msg == "serving" {
			address <- line.Address
		}
	}
}

// kill ends the process with SIGKILL, and waits for its end.
func (s *server) kill() {
	syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.gone
}

// syncBuffer is text that several goroutines may add to.
type syncBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *syncBuffer) add(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.WriteString(line + "\n")
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// within returns a context with a timeout far above the expected time.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// migrate prepares a store.
func migrate(t testing.TB, env []string, spec string) {
	t.Helper()
	cmd := invoke(t, regent, env, "migrate", "--store", spec)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
}
