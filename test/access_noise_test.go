package test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"regent/leadership/wire"
	"regent/test/machine"
)

// noise is a tenant that disturbs as much as it can.
type noise struct {
	a       *authServer
	loud    int
	address string
	token   string
	forged  string
	fates   fates // of what it tried
	client  *http.Client
	pace    *rate.Limiter // of its calls

	mu       sync.Mutex
	peak     usage // of the server
	streams  int   // that are open; guarded by mu
	watching []int // how many were, at each change; guarded by mu
}

func newNoise(a *authServer, loud int) *noise {
	n := &noise{a: a, loud: loud, address: strings.TrimPrefix(a.URL, "http://"), token: a.token("noisy@test"), forged: a.forge("victim@test")}
	n.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n.some(64)}}
	n.pace = rate.NewLimiter(rate.Limit(n.some(floodRate)), floodRate/10)
	n.watching = []int{0}
	if r := a.ask(n.token, "POST", "/v1/elections/noise-0:acquire", `{"candidateId":"noise","leaseDuration":"24h"}`); r.status != http.StatusOK {
		a.t.Fatal(r)
	}
	return n
}

// some scales a number of connections: a quarter in the short form.
func (n *noise) some(count int) int { return count * n.loud / machine.Size(4, 1) }

// floodRate is how many calls a second the noise makes at most, of all kinds.
const floodRate = 2000

// make makes noise until ctx ends.
func (n *noise) make(ctx context.Context) {
	defer n.client.CloseIdleConnections()
	var all sync.WaitGroup
	defer all.Wait()
	each := func(count int, one func(context.Context, int)) {
		for i := range count {
			all.Go(func() {
				for ctx.Err() == nil {
					one(ctx, i)
				}
			})
		}
	}
	each(min(n.some(2000), files(n.a.t)/8), n.silent)
	each(n.some(100), n.dripping)
	each(2*n.loud, n.headers)
	each(2*n.loud, n.body)
	each(n.some(16), n.flood)
	each(30, n.waiting)
	each(30, n.watch)
	each(20, n.deaf)
	for ctx.Err() == nil {
		now := n.a.usage()
		n.peak = usage{max(n.peak.files, now.files), max(n.peak.resident, now.resident)}
		pause(ctx, 500*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// dial opens a connection that is closed at the end of ctx at the latest. It returns nil if it
// cannot.
func (n *noise) dial(ctx context.Context, kind string) (connection *net.TCPConn, done func()) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", n.address)
	if err != nil {
		if ctx.Err() == nil {
			// Of how the kind is answered it says nothing.
			n.fates.add(fmt.Sprintf("without a connection: %s: %v", kind, err), nil)
			pause(ctx, time.Second)
		}
		return nil, func() {}
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	return c.(*net.TCPConn), func() { stop(); c.Close() }
}

// statusOf reads the first line of an answer; the first bytes if it has no line.
func statusOf(c io.Reader) string {
	line, _ := bufio.NewReader(c).ReadString('\n')
	if words := strings.Fields(line); len(words) > 1 && strings.HasPrefix(words[0], "HTTP/") {
		return words[1]
	}
	return "cut off"
}

// add notes the fate of one piece of noise, unless ctx has ended.
func (n *noise) add(ctx context.Context, kind, fate string) {
	if ctx.Err() == nil {
		n.fates.add(kind+": "+fate, nil)
	}
}

// silent holds a connection on which no request ever comes to its end, or none after the first.
func (n *noise) silent(ctx context.Context, i int) {
	c, done := n.dial(ctx, "silent")
	if c == nil {
		return
	}
	defer done()
	io.WriteString(c, []string{
		"", "G", "GET /v1/elections HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + n.token, "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n",
	}[i%4])
	io.Copy(io.Discard, c)
	n.add(ctx, "silent", "cut off")
}

// request returns the head of a request by the noisy tenant.
func (n *noise) request(method, target string, headers ...string) string {
	return method + " " + target + " HTTP/1.1\r\nHost: x\r\n" +
		strings.Join(append(headers, "Authorization: Bearer "+n.token, "Content-Type: "+wire.ContentType, "", ""), "\r\n")
}

// dripping sends a body byte by byte.
func (n *noise) dripping(ctx context.Context, i int) {
	c, done := n.dial(ctx, "dripping")
	if c == nil {
		return
	}
	defer done()
	io.WriteString(c, n.request("POST", fmt.Sprintf("/v1/elections/noise-%d:acquire", i), "Content-Length: 10000"))
	answered := make(chan string, 1)
	go func() { answered <- statusOf(c) }()
	for {
		select {
		case fate := <-answered:
			n.add(ctx, "dripping", fate)
			return
		case <-time.After(100 * time.Millisecond):
			c.Write([]byte(" "))
		}
	}
}

// send sends a head and then more for as long as the server takes it, and notes the answer.
func (n *noise) send(ctx context.Context, kind, head string, more []byte, times int) {
	c, done := n.dial(ctx, kind)
	if c == nil {
		return
	}
	defer done()
	answered := make(chan string, 1)
	go func() { answered <- statusOf(c) }()
	_, err := io.WriteString(c, head)
	for i := 0; i < times && err == nil; i++ {
		_, err = c.Write(more)
	}
	n.add(ctx, kind, <-answered)
	pause(ctx, 20*time.Millisecond)
}

// headers sends one header that is large, or many that are small.
func (n *noise) headers(ctx context.Context, i int) {
	const start = "GET /v1/elections HTTP/1.1\r\nHost: x\r\n"
	if i%2 == 0 {
		n.send(ctx, "headers", start+"X-Large: ", bytes.Repeat([]byte("x"), 64<<10), 16)
	} else {
		n.send(ctx, "headers", start, bytes.Repeat([]byte("X-Small: x\r\n"), 1000), 10)
	}
}

// body sends a body with a Content-Length of 1 GiB, or a chunked one without end.
func (n *noise) body(ctx context.Context, i int) {
	if i%2 == 0 {
		n.send(ctx, "body", n.request("POST", "/v1/elections/noise-0:acquire", "Content-Length: 1073741824"), make([]byte, 64<<10), 1<<14)
	} else {
		chunk := []byte("10000\r\n" + strings.Repeat(" ", 1<<16) + "\r\n")
		n.send(ctx, "body", n.request("POST", "/v1/elections/noise-0:acquire", "Transfer-Encoding: chunked"), chunk, 1<<14)
	}
}

// flood makes calls, paced only by floodRate.
func (n *noise) flood(ctx context.Context, _ int) {
	if n.pace.Wait(ctx) != nil {
		pause(ctx, time.Hour)
		return
	}
	election := fmt.Sprintf("/v1/elections/noise-%d", rand.IntN(10_000))
	calls := []struct{ method, target, body, token string }{
		{"POST", election + ":acquire", `{"candidateId":"noise","leaseDuration":"1s","metadata":{"x":"` + strings.Repeat("x", 4000) + `"}}`, n.token},
		{"POST", election + ":renew", `{"candidateId":"noise","key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8","fencingToken":1}`, n.token},
		{"GET", election + "?consistency=strong", "", n.token},
		{"GET", wire.PathElections + "?pageSize=1000", "", n.token},
		{"GET", election, "", n.token},
		{"DELETE", "/v1/elections/quiet-1?force=true", "", n.token},
		{"GET", election, "", ""},
		{"POST", "/v1/elections/quiet-1:acquire", `{"candidateId":"ann-1"}`, n.forged},
	}
	c := calls[rand.IntN(len(calls))]
	n.call(ctx, c.method, c.target, c.body, c.token)
}

func (n *noise) call(ctx context.Context, method, target, body, token string) {
	r, err := http.NewRequestWithContext(ctx, method, n.a.URL+target, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", wire.ContentType)
	if method == http.MethodDelete {
		r.Header.Set("If-Match", `"1"`)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := n.client.Do(r)
	if err != nil {
		n.add(ctx, "flood", "no answer")
		return
	}
	defer response.Body.Close()
	n.add(ctx, "flood", answered(response))
	io.Copy(io.Discard, response.Body)
}

// answered returns the status of an answer. One that limits the caller must say when to try again.
func answered(r *http.Response) string {
	if r.StatusCode == http.StatusTooManyRequests && r.Header.Get("Retry-After") == "" {
		return "429 without Retry-After"
	}
	return fmt.Sprint(r.StatusCode)
}

// waiting waits in line for an election that never becomes free.
func (n *noise) waiting(ctx context.Context, i int) {
	c, done := n.dial(ctx, "waiting")
	if c == nil {
		return
	}
	defer done()
	body := fmt.Sprintf(`{"candidateId":"noise-%d","wait":"60s","leaseDuration":"24h"}`, i)
	io.WriteString(c, n.request("POST", "/v1/elections/noise-0:acquire", fmt.Sprint("Content-Length: ", len(body)))+body)
	n.add(ctx, "waiting", statusOf(c))
	pause(ctx, 200*time.Millisecond)
}

// watch opens a stream and does not read it.
func (n *noise) watch(ctx context.Context, _ int) {
	c, done := n.dial(ctx, "watching")
	if c == nil {
		return
	}
	defer done()
	c.SetReadBuffer(2 << 10)
	io.WriteString(c, n.request("GET", wire.PathEvents+"?prefix=noise-", "Accept: "+wire.StreamType))
	first := make([]byte, len("HTTP/1.1 200"))
	io.ReadFull(c, first)
	fate := strings.TrimPrefix(string(first), "HTTP/1.1 ")
	if n.add(ctx, "watching", fate); fate == "200" {
		n.opened(1)
		pause(ctx, time.Hour)
		n.opened(-1)
	}
	pause(ctx, 200*time.Millisecond)
}

func (n *noise) opened(change int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.streams += change
	n.watching = append(n.watching, n.streams)
}

// deaf asks for many pages at once, and reads none.
func (n *noise) deaf(ctx context.Context, _ int) {
	c, done := n.dial(ctx, "deaf")
	if c == nil {
		return
	}
	defer done()
	c.SetReadBuffer(2 << 10)
	io.WriteString(c, strings.Repeat(n.request("GET", wire.PathElections+"?pageSize=1000"), 50))
	pause(ctx, time.Hour)
}
