package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership"
	"regent/leadership/wire"
	"regent/test/process"
)

// server is a regent serve in a process of its own.
type server struct {
	*process.Process
	env []string // for commands that call it
}

func startProcess(t *testing.T, args ...string) *server {
	t.Helper()
	p := process.Serve(t, itself(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...))
	return &server{p, []string{"REGENT_SERVER=" + p.URL}}
}

// itself returns a command that runs this program.
func itself(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = process.Environ(beRegent, "HOME="+t.TempDir())
	return cmd
}

// slowLog holds the line of a stop until it may be written.
type slowLog struct {
	serving, held, allowed chan struct{}
}

func (l *slowLog) Write(line []byte) (int, error) {
	switch {
	case bytes.Contains(line, []byte(`"serving"`)):
		close(l.serving)
	case bytes.Contains(line, []byte(`"stopping"`)):
		close(l.held)
		<-l.allowed
	}
	return len(line), nil
}

func TestServeWaitsForItsLastLine(t *testing.T) {
	t.Parallel()
	log := &slowLog{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, strings.Fields("serve --listen 127.0.0.1:0 --store memory:"), system{strings.NewReader(""), io.Discard, log, nil})
	}()
	<-log.serving
	stop()
	<-log.held
	select {
	case <-ended:
		close(log.allowed)
		t.Fatal("it ended while its last line was being written")
	case <-time.After(time.Second): // a serve that does not wait ends within milliseconds
	}
	close(log.allowed)
	if code := <-ended; code != exitDone {
		t.Errorf("exit code %d", code)
	}
}

// openCall starts a call whose body never comes, and returns when the service waits for it.
func openCall(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n", wire.Path("e", wire.Acquire))
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v; want 100 Continue", line, err)
	}
	return conn
}

func TestASecondSignalEndsItAtOnce(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "--store", "memory:")
	openCall(t, strings.TrimPrefix(p.URL, "http://"))
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTERM))
	p.Log.Await(t, "stopping")
	state := p.End(t, syscall.SIGTERM)
	if status := state.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("%v; want that the second SIGTERM ended it", state)
	}
}

// unread runs a command as a process whose standard output is closed.
func unread(t *testing.T, env []string, args string) result {
	t.Helper()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	reader.Close()
	defer writer.Close()
	var stderr strings.Builder
	cmd := itself(t, strings.Fields(args)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(cmd.Env, env...), writer, &stderr
	cmd.Run()
	return result{code: cmd.ProcessState.ExitCode(), err: stderr.String()}
}

func TestGrantThatCannotBePrintedIsReportedOnStandardError(t *testing.T) {
	t.Parallel()
	env := startServer(t, newClock())
	r := unread(t, env, "acquire e --candidate a --lease 5m").want(t, exitOther)
	if !strings.Contains(r.err, "the lease is held, but could not be printed") || !strings.Contains(r.err, "is lost: it expires in 5m0s") || strings.Contains(r.err, "Keep the key") {
		t.Errorf("without a key: %q", r.err)
	}
	r = unread(t, env, "acquire f --candidate a --key "+testKey(1)).want(t, exitOther)
	if !strings.Contains(r.err, "with the same key to print it again") || strings.Contains(r.err, testKey(1)) {
		t.Errorf("with a key: %q", r.err)
	}
}

func TestClosedLogDoesNotEndTheService(t *testing.T) {
	t.Parallel()
	cmd := itself(t, "serve", "--listen", "127.0.0.1:0", "--store", "memory:")
	log, in, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stderr = in
	p := process.Start(t, cmd)
	in.Close()
	for lines := bufio.NewScanner(log); lines.Scan() && !strings.Contains(lines.Text(), `"serving"`); {
	}
	require.NoError(t, log.Close())
	if state := p.End(t, syscall.SIGTERM); state.ExitCode() != exitDone { // it logs that it stops
		t.Errorf("%v; want that it ended in order", state)
	}
}

type backend struct {
	log  *process.Log
	stop context.CancelFunc
	code chan int
}

func startService(t *testing.T, env []string, args ...string) *backend {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &backend{log: process.NewLog(), stop: cancel, code: make(chan int, 1)}
	go func() {
		s.code <- run(ctx, append([]string{"serve"}, args...), system{strings.NewReader(""), io.Discard, s.log, env})
		s.log.Close()
	}()
	t.Cleanup(func() { s.end() })
	return s
}

// end stops the service if it runs, and returns its exit code.
func (s *backend) end() int {
	s.stop()
	code := <-s.code
	s.code <- code
	return code
}

func TestDefaultStoreIsInTheUsersStateFolder(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	s := startService(t, []string{"HOME=" + home}, "--listen", "127.0.0.1:0")
	path := filepath.Join(home, ".local", "state", "regent", "leases")
	if line := s.log.Await(t, "serving"); line["store"] != "file:"+path || line["severity"] != "INFO" {
		t.Errorf("%v; want the store file:%s", line, path)
	}
	if code := s.end(); code != exitDone {
		t.Errorf("exit code %d", code)
	}
	for name, want := range map[string]os.FileMode{filepath.Dir(path): os.ModeDir | 0o700, path: os.ModeDir | 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want mode %v", name, info.Mode(), err, want)
		}
	}
}

func TestLongCallsLeaveRoomForRenewalsWithoutAuthentication(t *testing.T) {
	t.Parallel()
	s := startService(t, []string{"REGENT_LISTEN=127.0.0.1:0"}, "--store", "memory:", "--auth", "none", "--max-concurrency", "2")
	env := []string{"REGENT_SERVER=http://" + s.log.Await(t, "serving")["address"].(string)}
	start(t, env, "watch --all").line(t) // the only long call that two requests at a time allow
	if r := regent(t, env, "watch --all --count 1").want(t, exitOther); !strings.Contains(r.err, "keeps its other requests for renewals") {
		t.Errorf("another long call: %s", r.err)
	}
	regent(t, env, "acquire jobs --candidate ann").want(t, exitDone)
}

func TestMemoryStoreLogsAWarning(t *testing.T) {
	t.Parallel()
	s := startService(t, []string{"FIRESTORE_EMULATOR_HOST=127.0.0.1:1"}, "--listen", "127.0.0.1:0", "--store", "memory:", "--dev")
	line := s.log.Await(t, "the leases are in memory: a restart forgets them, and their fencing tokens start from 1 again")
	if line["severity"] != "WARNING" {
		t.Errorf("%v; want a warning", line)
	}
	if code := s.end(); code != exitDone {
		t.Errorf("exit code %d", code)
	}
}

func TestARequiredProbeNeedsAURLToProbe(t *testing.T) {
	t.Parallel()
	access := filepath.Join(t.TempDir(), "access.yaml")
	require.NoError(t, os.WriteFile(access, []byte("grants: [{principals: [a@b.c], roles: [observer], elections: [reports]}]"), 0o600))
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		io.WriteString(w, "elsewhere")
	}))
	t.Cleanup(metadata.Close)
	env := []string{"K_SERVICE=x", "GCE_METADATA_HOST=" + strings.TrimPrefix(metadata.URL, "http://"), "REGENT_AUTH_PROBE=required"}
	r := regent(t, env, "serve --listen 127.0.0.1:0 --store memory: --auth platform --auth-audience a --access", access).want(t, exitUsage)
	if !strings.Contains(r.err, "names no region") || !strings.Contains(r.err, "--auth-probe") {
		t.Errorf("%q: want that the URL is not known, and how to name it", r.err)
	}
}

func TestTheWaitForAStoreEndsWithAnAnswerAMistakeAStopOrLate(t *testing.T) {
	t.Parallel()
	denied := storeError{"firestore:p", fmt.Errorf("firestore: get: %w: permission denied", leadership.StoreUnavailable)}
	moved := storeError{"firestore:p", &leadership.Error{Code: leadership.InvalidArgument, Detail: "moved"}}
	silent := storeError{"firestore:p", fmt.Errorf("firestore: get: %w: permission denied, or %w", leadership.StoreUnavailable, context.DeadlineExceeded)}
	for _, c := range []struct {
		name       string
		onCloudRun bool
		err        error
		answers    int // the attempt without err
		stop       time.Duration
		want       error
		after      time.Duration
		lines      int
	}{
		{"it answers at once", true, denied, 0, time.Hour, nil, 0, 0},
		{"it answers after a while", true, denied, 40, time.Hour, nil, 2 * time.Minute, 1},
		{"it never answers", true, denied, 1000, time.Hour, denied, 201 * time.Second, 1},
		{"its elections were moved", true, moved, 1000, time.Hour, moved, 0, 0},
		{"serve is told to stop", true, denied, 1000, time.Minute, denied, time.Minute, 1},
		{"a right is missing, elsewhere", false, denied, 1000, time.Hour, denied, 0, 0},
		{"it is starting, elsewhere", false, silent, 19, time.Hour, nil, 57 * time.Second, 1},
		{"it never answers, elsewhere", false, silent, 1000, time.Hour, silent, time.Minute, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.stop)
				defer cancel()
				var log bytes.Buffer
				begun, attempts := time.Now(), 0
				err := awaitStore(ctx, newLogTo(&log, false, ""), c.onCloudRun, func() error {
					if attempts++; attempts > c.answers {
						return nil
					}
					return c.err
				})
				if !errors.Is(err, c.want) || time.Since(begun) != c.after {
					t.Errorf("%v after %v; want %v after %v", err, time.Since(begun), c.want, c.after)
				}
				if n := strings.Count(log.String(), "permission denied"); n != c.lines {
					t.Errorf("%d lines of the log say why, want %d: %s", n, c.lines, log.String())
				}
			})
		})
	}
}

func TestServeWaitsForTheRightsToItsStoreOnCloudRunOnly(t *testing.T) {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	firestore := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return status.Error(codes.PermissionDenied, "no right yet") }))
	go firestore.Serve(at)
	t.Cleanup(firestore.Stop)
	t.Setenv("FIRESTORE_EMULATOR_HOST", at.Addr().String()) // read by the store
	args := []string{"--listen", "127.0.0.1:0", "--dev", "--store", "firestore:p"}
	if r := run(t.Context(), append([]string{"serve"}, args...), system{strings.NewReader(""), io.Discard, io.Discard, nil}); r != exitUnreachable {
		t.Errorf("elsewhere: exit code %d, want %d", r, exitUnreachable)
	}
	s := startService(t, []string{"K_SERVICE=regent"}, args...)
	if line := s.log.Await(t, "the store does not answer yet, and this instance waits for it; a right that was just granted takes minutes to count"); line["severity"] != "WARNING" || !strings.Contains(fmt.Sprint(line["cause"]), "no right yet") {
		t.Errorf("%v; want a warning with the cause", line)
	}
	if code := s.end(); code != exitDone {
		t.Errorf("stopped while it waits: exit code %d, want %d", code, exitDone)
	}
}
