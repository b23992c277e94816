package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
	"regent/test/load"
	"regent/test/lockset"
	"regent/test/machine"
	"regent/test/process"
)

func TestMain(m *testing.M) {
	if load.Main() || lockset.Main() {
		return
	}
	machine.Main(m)
}

// invoke returns a command of a program, with the environment of a program under test.
func invoke(t testing.TB, program process.Program, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := program.Command(t, args...)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// server is a running `regent serve`.
type server struct {
	cmd    *exec.Cmd
	URL    string
	client *client.Client
	log    *process.Log
	gone   <-chan struct{} // closed once the process has ended
	kill   func()          // and wait for the end
}

// serve starts the program on a free port and waits until it serves. It is killed when the test
// ends.
func serve(t testing.TB, env []string, args ...string) *server {
	t.Helper()
	return start(t, invoke(t, process.Regent, env, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...))
}

// start starts a command that serves, in a process group of its own, and waits until it does.
func start(t testing.TB, cmd *exec.Cmd) *server {
	t.Helper()
	p := process.Serve(t, cmd)
	s := &server{cmd: p.Cmd, URL: p.URL, log: p.Log, gone: p.Gone, kill: p.Kill}
	t.Cleanup(func() {
		s.kill()
		s.requireNoSecrets(t)
	})
	var err error
	if s.client, err = client.New(client.Config{Server: s.URL, HTTP: &http.Client{Transport: patient{&http.Transport{MaxIdleConnsPerHost: 128}}}}); err != nil {
		t.Fatal(err)
	}
	return s
}

// patient makes a call anew while an emulator, on a busy machine, does not carry it out or does not
// answer in time. Copies of calls are recognised, or refused.
type patient struct{ http.RoundTripper }

func (p patient) RoundTrip(call *http.Request) (*http.Response, error) {
	for begun := time.Now(); ; <-time.After(5 * time.Millisecond) {
		reply, err := p.RoundTripper.RoundTrip(call)
		if err != nil || reply.StatusCode < http.StatusInternalServerError || time.Since(begun) > machine.Patience {
			return reply, err
		}
		body, err := io.ReadAll(reply.Body)
		if err := errors.Join(err, reply.Body.Close()); err != nil {
			return nil, err
		}
		var problem wire.Problem
		json.Unmarshal(body, &problem) // one without a code is returned
		if problem.Code != leadership.StoreUnavailable && problem.Code != leadership.OutcomeUnknown || call.GetBody == nil && call.Body != nil {
			reply.Body = io.NopCloser(bytes.NewReader(body))
			return reply, nil
		}
		if call = call.Clone(call.Context()); call.Body != nil {
			if call.Body, err = call.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// secret matches a key, and the beginning of a caller's token.
var secret = regexp.MustCompile(`(^|[^A-Za-z0-9_/-])([A-Za-z0-9_-]{43}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*)($|[^A-Za-z0-9_-])`)

// requireNoSecrets fails if the server's log has a key or the token of a caller.
func (s *server) requireNoSecrets(t testing.TB) {
	if found := secret.FindString(s.log.String()); found != "" {
		t.Errorf("the server's log has a secret in it: %s", found)
	}
}

// plain is for calls that the SDK does not have.
var plain = &http.Client{Timeout: 30 * time.Second}

// live waits until the server is healthy: it hears events.
func live(t testing.TB, s *server) *server {
	t.Helper()
	machine.Eventually(t, s.URL+" is healthy", func() bool {
		var health wire.Health
		reply, err := plain.Get(s.URL + wire.PathReady)
		if err == nil {
			err = json.NewDecoder(reply.Body).Decode(&health)
			reply.Body.Close()
		}
		return err == nil && health.Status == wire.Healthy
	})
	return s
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
	cmd := invoke(t, process.Regent, env, "admin", "migrate", "--store", spec)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
}
