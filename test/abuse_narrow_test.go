package test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"regent/leadership/client"
	"regent/test/machine"
	"regent/test/process"
)

// narrow is how many files the server may have open in these tests.
const narrow = 256

// A client opens far more connections than the server may have files, and says nothing on them, or
// one thing and no more. A leader that renews loses nothing, and a new caller is answered in time
// for a lease.
func TestTooManyConnectionsCostNoLease(t *testing.T) {
	machine.Share(t)
	a := serveNarrow(t, tenants)
	v := a.newVictim()
	n := newNoise(a, 1)
	var late machine.Excuses
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for i := range 4 * narrow {
		all.Go(func() {
			for ctx.Err() == nil {
				n.silent(ctx, i)
				pause(ctx, time.Second)
			}
		})
	}
	const callers = 15
	answered := 0
	for begun := time.Now(); answered < callers || n.fates.count("silent: cut off") < narrow; answered++ {
		if time.Since(begun) > patience {
			t.Fatalf("only %d connections had to make room within %v", n.fates.count("silent: cut off"), patience)
		}
		v.watch.after(ctx, 500*time.Millisecond)
		begin := time.Now()
		// A busy machine may send the request so late that its connection has made room for
		// another.
		late.Redo(func(int) error { return a.readAnew() })
		if took := time.Since(begin); took > quietLease() {
			t.Errorf("a new caller is answered after %v", took)
		}
	}
	late.Check(t)
	stop()
	all.Wait()
	t.Logf("%d new callers; %v; %v", answered, v.watch.take(), &n.fates)
	v.check()
	if strings.Contains(a.log.String(), "too many open files") {
		t.Error("the server has run out of files")
	}
}

// readAnew reads an election as the victim, over a connection of its own.
func (a *authServer) readAnew() error {
	_, err := a.fresh().Get(within(a.t, patience), "quiet-1")
	return err
}

// fresh is the victim's client with connections of its own.
func (a *authServer) fresh() *client.Client {
	c, err := client.New(client.Config{Server: a.URL, Token: func(context.Context) (string, error) { return a.token("victim@test"), nil }})
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// serveNarrow is serveAsking with few files.
func serveNarrow(t *testing.T, policy string) *authServer {
	t.Helper()
	a := &authServer{t: t, issuer: newIssuer(t), policy: filepath.Join(t.TempDir(), "policy.yaml"), tokens: map[string]string{}}
	a.write(policy)
	path := process.Regent.Path(t)
	at := inFile(t).with("--auth-audience", forRegent, "--policy", a.policy, "--auth", "oidc", "--auth-issuer", a.issuer.URL())
	limited := []string{"-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, narrow), "sh", path, "serve", "--listen", "127.0.0.1:0"}
	cmd := exec.Command("sh", append(limited, at.args...)...)
	cmd.Env = process.Environ()
	a.server = start(t, cmd)
	a.line, a.heard = overhear(t, a.URL)
	t.Cleanup(a.search)
	return a
}
