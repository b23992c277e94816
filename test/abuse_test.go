package test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
	"regent/test/machine"
	"regent/test/process"
)

const (
	// instanceMemory is what an instance of 512 MiB tells Go to live with.
	instanceMemory = "400MiB"
	// mostMemory is what it may take at its peak.
	mostMemory = 400 << 20
	// instanceFiles is how many files it may have open: fewer than an attack has connections.
	instanceFiles = 256
	// attackers is how many connections an attack has.
	attackers = 64
	// quietLeases are those of a principal that makes no noise.
	quietLeases = 10
)

// tenants is a policy for a tenant that leads and one that attacks; setup prepares what is
// attacked.
const tenants = `
grants:
  - {principals: [victim@test], roles: [candidate, observer], elections: ["quiet-*"], candidates: ["ann-*"]}
  - {principals: [noisy@test, setup@test], roles: [candidate, observer], elections: ["noise-*"], candidates: ["*"]}
limits:
  - {principals: [setup@test], reads: 100000}
`

// attack is one way to exhaust an instance.
type attack struct {
	prepare func(*attacked)                               // nil for nothing
	one     func(ctx context.Context, a *attacked, i int) // one round of one connection
	many    int                                           // connections; attackers if it is 0
	until   string                                        // goes on until an answer with this status was seen, or "cut off"
}

// One principal attacks an instance of 512 MiB, or strangers do. Its memory stays small, another
// principal loses no lease and is answered, and afterwards the attacker, too, is served. The tests
// run alone: they count on the machine.
func TestAnInstanceUnderAttackServesOthers(t *testing.T) {
	endless := bytes.Repeat([]byte(" "), wire.MaxBatchBody-1)
	for name, x := range map[string]attack{
		"more silent connections than files": {many: 2 * instanceFiles, until: "cut off", one: func(ctx context.Context, a *attacked, i int) {
			said := []string{"", "G", "GET /v1/elections HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + a.token, "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"}
			a.raw(ctx, said[i%4], nil)
			select {
			case <-time.After(time.Second): // as a caller that comes again
			case <-ctx.Done():
			}
		}},
		"bodies that do not end": {many: 150, until: "429", one: func(ctx context.Context, a *attacked, i int) {
			length := "Transfer-Encoding: chunked\r\n\r\n1fffff"
			if i%2 == 0 {
				length = fmt.Sprint("Content-Length: ", wire.MaxBatchBody, "\r\n")
			}
			a.raw(ctx, "POST "+wire.PathBatchRenew+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+a.token+"\r\nContent-Type: application/json\r\n"+length+"\r\n", endless)
		}},
		"all members, and costly reads": {until: "429", prepare: (*attacked).prepareCrowd, one: func(ctx context.Context, a *attacked, i int) {
			a.call(ctx, a.token, "GET", []string{"/v1/elections/noise-crowd" + wire.AllMembers, "/v1/elections/noise-crowd" + wire.TreePath, wire.PathElections + "?pageSize=1000"}[i%3], "")
		}},
	} {
		t.Run(name, func(t *testing.T) { x.run(t, machine.Size(1, 20)) })
	}
}

// run attacks a server, while the leases of the victim are renewed so often.
func (x attack) run(t *testing.T, renewals int) {
	a := newAttacked(t)
	if x.prepare != nil {
		x.prepare(a)
	}
	leases := a.lead()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var attacking sync.WaitGroup
	for i := range max(x.many, attackers) {
		attacking.Go(func() {
			for ctx.Err() == nil {
				x.one(ctx, a, i)
			}
		})
	}
	eventually(t, "an answer of "+x.until, func() bool { return a.answers(x.until) > 0 })
	for range renewals {
		select {
		case <-leases[0].Extended():
		case <-leases[0].Context().Done():
		}
		eventually(t, "another principal reads and joins", func() bool {
			c := a.as("victim@test", client.Candidate{})
			_, unread := c.Get(t.Context(), "quiet-1")
			_, unjoined := c.Join(t.Context(), leadership.JoinRequest{Election: "quiet-1", CandidateID: "ann-9", Role: leadership.RoleFollower, TTL: time.Minute})
			return unread == nil && unjoined == nil
		})
	}
	for _, l := range leases {
		if !l.Valid() || l.Token() != 1 {
			t.Errorf("%s is lost: %v", l.Election(), context.Cause(l.Context()))
		}
	}
	stop()
	attacking.Wait()
	a.client.CloseIdleConnections()
	peak := a.peak()
	t.Logf("at most %d MiB; %v", peak>>20, a.seen)
	if peak > mostMemory {
		t.Errorf("the server took %d MiB; want %d at most", peak>>20, mostMemory>>20)
	}
	if strings.Contains(a.log.String(), "too many open files") {
		t.Error("the server has run out of files")
	}
	a.await(http.StatusOK, a.token, "POST", "/v1/elections/noise-after:acquire", `{"candidateId":"after"}`)
}

// attacked is a server that is attacked.
type attacked struct {
	*authServer
	token  string // of the attacker
	client *http.Client

	mu   sync.Mutex
	seen map[string]int // answers, by status; guarded by mu
}

// newAttacked starts a server with the memory and the files of a small instance.
func newAttacked(t *testing.T) *attacked {
	t.Helper()
	issuer := newIssuer(t)
	s := newAuthServer(t, issuer, tenants)
	at := inFile(t).with("--auth-audience", forRegent, "--policy", s.policy, "--auth", "oidc", "--auth-issuer", issuer.URL())
	limited := []string{"-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, instanceFiles), "sh", process.Regent.Path(t), "serve", "--listen", "127.0.0.1:0"}
	cmd := exec.Command("sh", append(limited, at.args...)...)
	cmd.Env = process.Environ("GOMEMLIMIT=" + instanceMemory)
	s.begin(start(t, cmd))
	return &attacked{
		authServer: s, token: s.token("noisy@test"), seen: map[string]int{},
		client: &http.Client{Transport: &http.Transport{MaxConnsPerHost: attackers, MaxIdleConnsPerHost: attackers}},
	}
}

// lead lets the victim lead some elections, until the test ends.
func (a *attacked) lead() (leases []*client.Lease) {
	a.t.Helper()
	for i := range quietLeases {
		c, err := client.New(client.Config{
			Server: a.URL, Log: slog.New(slog.DiscardHandler),
			Token:     func(context.Context) (string, error) { return a.authServer.token("victim@test"), nil },
			Candidate: client.Candidate{ID: leadership.CandidateID(fmt.Sprintf("ann-%d", i)), LeaseDuration: machine.Size(9*time.Second, 3*time.Second)},
		})
		if err != nil {
			a.t.Fatal(err)
		}
		l, err := c.Campaign(within(a.t, patience), leadership.Election(fmt.Sprintf("quiet-%d", i)))
		if err != nil {
			a.t.Fatal(err)
		}
		a.t.Cleanup(func() { l.Resign(context.WithoutCancel(a.t.Context())) })
		leases = append(leases, l)
	}
	return leases
}

// answered counts an answer.
func (a *attacked) answered(status string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen[status]++
}

func (a *attacked) answers(status string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen[status]
}

// call makes a call, and returns the status; 0 for no answer.
func (a *attacked) call(ctx context.Context, token, method, path, body string) (status int) {
	r, err := http.NewRequestWithContext(ctx, method, a.URL+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", wire.ContentType)
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := a.client.Do(r)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	if a.answered(fmt.Sprint(response.StatusCode)); response.StatusCode == http.StatusTooManyRequests && response.Header.Get("Retry-After") == "" {
		a.t.Errorf("%s: 429 without Retry-After", path)
	}
	io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// raw sends a head and a body on a connection of its own, and waits for its end.
func (a *attacked) raw(ctx context.Context, head string, body []byte) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(a.URL, "http://"))
	if err != nil {
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	io.WriteString(c, head)
	go c.Write(body)
	text, _ := io.ReadAll(c)
	if ctx.Err() != nil {
		return
	}
	status := "cut off"
	if words := strings.Fields(string(text)); len(words) > 1 {
		status = words[1]
	}
	a.answered(status)
}

// prepareCrowd makes an election with as many members as fit into an instance.
func (a *attacked) prepareCrowd() {
	a.t.Helper()
	setup := a.authServer.token("setup@test")
	a.call(a.t.Context(), setup, "POST", "/v1/elections/noise-crowd:acquire", `{"candidateId":"setup","leaseDuration":"1h"}`)
	var all sync.WaitGroup
	for i := range attackers {
		all.Go(func() {
			for n := 0; ; n++ {
				member := fmt.Sprintf(`{"candidateId":"member-%d-%d","role":"follower","ttl":"5m"}`, i, n)
				if a.call(a.t.Context(), setup, "POST", "/v1/elections/noise-crowd"+wire.Join, member) != http.StatusOK {
					return
				}
			}
		})
	}
	all.Wait()
}

// peak returns the most memory that the server has taken since it began.
func (a *attacked) peak() int64 {
	a.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kilobytes int64
	if n, _ := fmt.Sscanf(rest, "%d kB", &kilobytes); n != 1 {
		a.t.Fatalf("the peak of the server's memory is not told: %v", err)
	}
	return kilobytes << 10
}
