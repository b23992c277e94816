package test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

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
	instanceFiles = 512
	// latestRenewal is how late a renewal may be answered.
	latestRenewal = time.Second
	// attackers is how many connections an attack has.
	attackers = 64
)

// tenants is an access file for a tenant that leads and one that attacks; setup prepares what is
// attacked.
const tenants = `
grants:
  - {principals: [victim@test], roles: [candidate, observer], elections: ["quiet-*"], candidates: ["ann-*"]}
  - {principals: [noisy@test, setup@test], roles: [candidate, observer], elections: ["noise-*", "k8s.default.noise-*"], candidates: ["*"]}
limits:
  - {principals: [setup@test], reads: 100000}
`

// attack is one way to exhaust an instance.
type attack struct {
	flags   []string
	access  string                                        // what follows tenants
	prepare func(*attacked)                               // nil for nothing
	one     func(ctx context.Context, a *attacked, i int) // one round of one connection
	many    int                                           // connections; attackers if it is 0
	until   string                                        // goes on until an answer with this status was seen, or "cut off"
}

// One principal attacks an instance of 512 MiB in each way by which one could once be exhausted, or
// strangers do. Its memory stays small, another principal is answered, its renewals in time, and
// afterwards the attacker, too, is served. The tests run alone: they count on the machine.
func TestAnInstanceUnderAttackServesOthers(t *testing.T) {
	nested := leaseOf(strings.Repeat(`{"x":`, 9000) + "1" + strings.Repeat("}", 9000))
	batch := "[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"tools/list"},`, 3000), ",") + "]"
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
		"nested bodies at Kubernetes' door": {flags: []string{"--kubernetes"}, one: func(ctx context.Context, a *attacked, i int) {
			a.call(ctx, "PUT", fmt.Sprintf("/apis/coordination.k8s.io/v1/namespaces/default/leases/noise-%d", i), nested)
		}},
		"batches at the door of models": {flags: []string{"--mcp"}, until: "400", one: func(ctx context.Context, a *attacked, _ int) {
			a.call(ctx, "POST", "/mcp", batch)
			a.call(ctx, "POST", "/mcp", batch[1:strings.Index(batch, "}")+1])
		}},
		"bodies that do not end": {many: 300, until: "429", one: func(ctx context.Context, a *attacked, i int) {
			length := "Transfer-Encoding: chunked\r\n\r\n1fffff"
			if i%2 == 0 {
				length = fmt.Sprint("Content-Length: ", wire.MaxBatchBody, "\r\n")
			}
			a.raw(ctx, "POST "+wire.PathBatchRenew+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+a.token+"\r\nContent-Type: application/json\r\n"+length+"\r\n", endless)
		}},
		"members": {until: "409", access: "  - {principals: [noisy@test], reads: 100000}\n", one: func(ctx context.Context, a *attacked, i int) {
			for n := 0; ctx.Err() == nil && a.call(ctx, "POST", "/v1/elections/noise-0"+wire.Join, fmt.Sprintf(`{"candidateId":"m-%d-%d","role":"follower","ttl":"5m"}`, i, n)) == http.StatusOK; n++ {
			}
		}, prepare: func(a *attacked) {
			a.ask(a.authServer.token("setup@test"), "POST", "/v1/elections/noise-0:acquire", `{"candidateId":"setup"}`)
		}},
		"long calls": {flags: []string{"--max-concurrency", fmt.Sprint(attackers)}, until: "429", one: func(ctx context.Context, a *attacked, _ int) {
			a.raw(ctx, "GET /v1/elections/noise-0/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+a.token+"\r\nAccept: "+wire.StreamType+"\r\n\r\n", nil)
		}},
		"costly reads": {until: "429", prepare: (*attacked).prepareCrowd, one: func(ctx context.Context, a *attacked, i int) {
			a.call(ctx, "GET", []string{"/v1/elections/noise-crowd" + wire.AllMembers, "/v1/elections/noise-crowd" + wire.TreePath, wire.PathElections + "?pageSize=1000"}[i%3], "")
		}},
		"bytes of journals": {one: func(ctx context.Context, a *attacked, i int) { a.append(ctx, i) }},
	} {
		t.Run(name, func(t *testing.T) { x.run(t, machine.Size(2*time.Second, time.Minute)) })
	}
}

func leaseOf(spec string) string {
	return `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"noise-0","resourceVersion":"1"},"spec":` + spec + `}`
}

// run attacks a server for so long, or until the effect was seen.
func (x attack) run(t *testing.T, lasting time.Duration) {
	a := x.begin(t)
	if x.prepare != nil {
		x.prepare(a)
	}
	quiet := a.newRenewals()
	ctx, stop := context.WithTimeout(t.Context(), lasting)
	defer stop()
	forced, end := context.WithCancel(t.Context()) // the attack goes on until its effect was seen
	defer end()
	var attacking, renewing sync.WaitGroup
	for i := range max(x.many, attackers) {
		attacking.Go(func() {
			for forced.Err() == nil {
				x.one(forced, a, i)
			}
		})
	}
	renewing.Go(func() { quiet.keep(forced) })
	<-ctx.Done()
	machine.Eventually(t, "an answer of "+x.until, func() bool { return x.until == "" || a.saw(x.until) })
	victim := a.authServer.token("victim@test")
	if r := a.answerTo(victim, "POST", "/v1/elections/quiet-0"+wire.Join, `{"candidateId":"ann-9","role":"follower","ttl":"10s"}`); r.status != http.StatusOK {
		t.Errorf("another principal cannot join: %d %s", r.status, r.body)
	}
	if r := a.answerTo(victim, "GET", "/v1/elections/quiet-0?wait=10ms", "", "If-None-Match", `"1"`); r.status == http.StatusTooManyRequests {
		t.Errorf("another principal cannot wait: %d %s", r.status, r.body)
	}
	end()
	attacking.Wait()
	renewing.Wait()
	a.client.CloseIdleConnections()
	peak := a.peak()
	t.Logf("at most %d MiB; %s; %v", peak>>20, quiet, a.seen)
	if peak > mostMemory {
		t.Errorf("the server took %d MiB; want %d at most", peak>>20, mostMemory>>20)
	}
	if strings.Contains(a.log.String(), "too many open files") {
		t.Error("the server has run out of files")
	}
	quiet.check(t)
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

// begin starts a server with the memory and the files of a small instance.
func (x attack) begin(t *testing.T) *attacked {
	t.Helper()
	issuer := newIssuer(t)
	s := newAuthServer(t, issuer, tenants+x.access)
	at := inFile(t).with("--auth-audience", forRegent, "--access", s.access, "--auth", "oidc", "--auth-issuer", issuer.URL()).with(x.flags...)
	limited := []string{"-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, instanceFiles), "sh", process.Regent.Path(t), "serve", "--listen", "127.0.0.1:0"}
	cmd := exec.Command("sh", append(limited, at.args...)...)
	cmd.Env = process.Environ("GOMEMLIMIT=" + instanceMemory)
	s.begin(start(t, cmd))
	return &attacked{
		authServer: s, token: s.token("noisy@test"), seen: map[string]int{},
		client: &http.Client{Transport: &http.Transport{MaxConnsPerHost: attackers, MaxIdleConnsPerHost: attackers}},
	}
}

// answerTo is ask, again as every client does if the connection was closed to make room: the proxy
// before the server says so with 502.
func (a *attacked) answerTo(token, method, path, body string, headers ...string) (r answer) {
	a.t.Helper()
	machine.Eventually(a.t, method+" "+path+": an answer", func() bool {
		r = a.ask(token, method, path, body, headers...)
		return r.status != http.StatusBadGateway
	})
	return r
}

// answered counts an answer.
func (a *attacked) answered(status string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen[status]++
}

func (a *attacked) saw(status string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen[status] > 0
}

// call makes a call as the attacker, and returns the status; 0 for no answer.
func (a *attacked) call(ctx context.Context, method, path, body string) int {
	status, _ := a.answer(ctx, method, path, body)
	return status
}

// answer is call with a part of the answer.
func (a *attacked) answer(ctx context.Context, method, path, body string) (status int, text []byte) {
	r, err := http.NewRequestWithContext(ctx, method, a.URL+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", wire.ContentType)
	r.Header.Set("Accept", "application/json, text/event-stream")
	if strings.HasPrefix(path, "/v1/") {
		r.Header.Set("Accept", "application/json")
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	response, err := a.client.Do(r)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	if a.answered(fmt.Sprint(response.StatusCode)); response.StatusCode == http.StatusTooManyRequests && response.Header.Get("Retry-After") == "" {
		a.t.Errorf("%s: 429 without Retry-After", path)
	}
	text, _ = io.ReadAll(io.LimitReader(response.Body, 4<<10))
	io.Copy(io.Discard, response.Body)
	a.heard.find(text)
	return response.StatusCode, text
}

// raw sends a head and a body on a connection of its own, and waits for a refusal or its end.
func (a *attacked) raw(ctx context.Context, head string, body []byte) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(a.URL, "http://"))
	if err != nil {
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	io.WriteString(c, head)
	go c.Write(body)
	answer := bufio.NewReader(c)
	line, _ := answer.ReadString('\n')
	if ctx.Err() != nil {
		return
	}
	status := "cut off"
	if words := strings.Fields(line); len(words) > 1 {
		status = words[1]
	}
	if a.answered(status); status == "200" {
		io.Copy(io.Discard, answer)
	}
}

// prepareCrowd makes an election with as many members as fit into an instance.
func (a *attacked) prepareCrowd() {
	a.t.Helper()
	setup := &attacked{authServer: a.authServer, token: a.authServer.token("setup@test"), client: a.client, seen: map[string]int{}}
	setup.call(a.t.Context(), "POST", "/v1/elections/noise-crowd:acquire", `{"candidateId":"setup","leaseDuration":"1h"}`)
	var all sync.WaitGroup
	for i := range attackers {
		all.Go(func() {
			for n := 0; setup.call(a.t.Context(), "POST", "/v1/elections/noise-crowd"+wire.Join, fmt.Sprintf(`{"candidateId":"member-%d-%d","role":"follower","ttl":"5m"}`, i, n)) == http.StatusOK; n++ {
			}
		})
	}
	all.Wait()
}

// append leads an election, and appends to its journal as much as the server takes.
func (a *attacked) append(ctx context.Context, i int) {
	path := fmt.Sprintf("/v1/elections/noise-%d", i)
	var lease struct {
		Key          string
		FencingToken int64
	}
	status, text := a.answer(ctx, "POST", path+":acquire", fmt.Sprintf(`{"candidateId":"a-%d","leaseDuration":"1h"}`, i))
	if status != http.StatusOK || json.Unmarshal(text, &lease) != nil {
		return
	}
	holder := fmt.Sprintf(`"candidateId":"a-%d","key":%q,"fencingToken":%d`, i, lease.Key, lease.FencingToken)
	entries := `"entries":[{"data":"` + strings.Repeat("x", 500<<10) + `"}]}`
	a.call(ctx, "POST", path+wire.JournalPath+":open", "{"+holder+"}")
	for after := 0; ctx.Err() == nil; {
		if a.call(ctx, "POST", path+wire.JournalPath+wire.Append, fmt.Sprintf(`{%s,"after":%d,%s`, holder, after, entries)) == http.StatusOK {
			after++
		}
	}
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

// renewals are the leases of a principal that makes no noise.
type renewals struct {
	a      *attacked
	client *http.Client
	paths  []string
	bodies []string

	mu     sync.Mutex
	took   []time.Duration // guarded by mu
	wrong  []string        // guarded by mu
	excess []time.Duration // by how much each was later than a bystander's timer; guarded by mu
}

const quietRenewals = 10

func (a *attacked) newRenewals() *renewals {
	a.t.Helper()
	r := &renewals{a: a, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: quietRenewals}}}
	for i := range quietRenewals {
		path := fmt.Sprintf("/v1/elections/quiet-%d", i)
		var lease struct {
			Key          string
			FencingToken int64
		}
		got := a.ask(a.authServer.token("victim@test"), "POST", path+":acquire", fmt.Sprintf(`{"candidateId":"ann-%d","leaseDuration":"10s"}`, i))
		if err := json.Unmarshal([]byte(got.body), &lease); err != nil || got.status != http.StatusOK {
			a.t.Fatalf("%d %s", got.status, got.body)
		}
		r.paths = append(r.paths, a.URL+path+":renew")
		r.bodies = append(r.bodies, fmt.Sprintf(`{"candidateId":"ann-%d","key":%q,"fencingToken":%d}`, i, lease.Key, lease.FencingToken))
	}
	return r
}

// keep renews each lease a few times a second until ctx ends.
func (r *renewals) keep(ctx context.Context) {
	var all sync.WaitGroup
	for i := range r.paths {
		all.Go(func() {
			for ctx.Err() == nil {
				r.renew(i)
				select {
				case <-time.After(200 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	all.Wait()
}

// renew renews a lease, again as every client does if its connection was closed to make room, and
// notes how late a bystander was meanwhile. A refusal is never the machine's fault. How often a
// connection was closed does not matter, only how long it takes until there is an answer.
func (r *renewals) renew(i int) {
	by := newBystander(r.a.cmd.Process.Pid)
	begun := time.Now()
	status, text := r.send(i)
	for status == 0 && time.Since(begun) < 10*latestRenewal {
		status, text = r.send(i)
	}
	took := time.Since(begun)
	late := by.late()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took, r.excess = append(r.took, took), append(r.excess, took-late)
	if status != http.StatusOK {
		r.wrong = append(r.wrong, fmt.Sprintf("%d %s", status, text))
	}
}

// send sends a renewal, and returns 0 and the error if there was no answer.
func (r *renewals) send(i int) (status int, text string) {
	q, err := http.NewRequestWithContext(r.a.t.Context(), "POST", r.paths[i], strings.NewReader(r.bodies[i]))
	if err != nil {
		panic(err)
	}
	q.Header.Set("Content-Type", wire.ContentType)
	q.Header.Set("Authorization", "Bearer "+r.a.authServer.token("victim@test"))
	response, err := r.client.Do(q)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

func (r *renewals) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%d renewals in %s", len(r.took), distribution(r.took))
}

func (r *renewals) check(t *testing.T) {
	t.Helper()
	if len(r.wrong) > 0 {
		t.Errorf("%d renewals failed, the first with %s", len(r.wrong), r.wrong[0])
	}
	for i, excess := range r.excess {
		if excess > latestRenewal {
			t.Errorf("a renewal took %v, %v more than the machine was late", r.took[i], excess)
		}
	}
}

// bystander counts how late this machine is: a plain timer of this process that is due ten times a
// second, and the threads of the server, which wait for a processor though they could run.
type bystander struct {
	server int
	waited time.Duration
	stop   chan struct{}
	total  chan time.Duration
}

func newBystander(server int) *bystander {
	const every = 100 * time.Millisecond
	b := &bystander{server, waited(server), make(chan struct{}), make(chan time.Duration, 1)}
	go func() {
		var total time.Duration
		for {
			due := time.Now().Add(every)
			select {
			case <-time.After(every):
				total += time.Since(due)
			case <-b.stop:
				b.total <- total + max(time.Since(due), 0)
				return
			}
		}
	}()
	return b
}

func (b *bystander) late() time.Duration {
	close(b.stop)
	return <-b.total + max(waited(b.server)-b.waited, 0)/time.Duration(runtime.NumCPU())
}

// waited is for how long the threads of a process could have run, and had no processor.
func waited(pid int) (sum time.Duration) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, file := range files {
		text, _ := os.ReadFile(file) // a thread may have ended
		var ran, waited time.Duration
		fmt.Sscan(string(text), &ran, &waited)
		sum += waited
	}
	return sum
}
