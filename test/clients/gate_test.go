package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/wire"
)

// gate stands before a server. It sees each request, and does with it what the first rule for it
// says: without one it passes the request on and the reply back.
type gate struct {
	*httptest.Server
	target string
	prefix string // of the paths that are for the server

	mu       sync.Mutex // guards all below
	rules    []*answer
	edits    []edit
	requests []*request
}

// request is one call as it arrived, and what became of it.
type request struct {
	verb   wire.Verb
	method string
	at     time.Duration // of its arrival, as all moments here on boottime.Now

	CandidateID  leadership.CandidateID
	Key          string
	FencingToken leadership.Token
	Ticket       string

	until time.Duration // a lease that the reply gave lasts until then at most; 0 for none
	gone  bool          // the caller has hung up, or is answered
}

// rule is what to do with the next requests of a verb.
type answer struct {
	verb wire.Verb // "" for every one
	left int
	act  act
}

// act treats a request.
type act func(*exchange)

// edit changes the JSON object of a success, and its header.
type edit func(x *exchange, reply map[string]any, header http.Header)

// always is the number of a rule that stays.
const always = 1 << 30

func newGate(t testing.TB, target string, election leadership.Election) *gate {
	t.Helper()
	g := &gate{target: target, prefix: wire.PathElections + "/" + string(election)}
	g.Server = httptest.NewServer(g)
	g.Server.Config.ErrorLog = quiet
	t.Cleanup(g.CloseClientConnections)
	return g
}

// on does that with the next n requests of the verb, after the rules that there are.
func (g *gate) on(verb wire.Verb, n int, do act) {
	g.change(func() { g.rules = append(g.rules, &answer{verb, n, do}) })
}

// edit changes each further success.
func (g *gate) edit(e edit) { g.change(func() { g.edits = append(g.edits, e) }) }

// hurry has leases renewed so often, however long they are.
func (g *gate) hurry(every time.Duration) {
	g.edit(func(_ *exchange, reply map[string]any, _ http.Header) {
		if _, ok := reply["renewInMs"]; ok {
			reply["renewInMs"] = every.Milliseconds()
		}
	})
}

// change changes something.
func (g *gate) change(how func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	how()
}

// of returns copies of the requests of the verb, in the order of their arrival.
func (g *gate) of(verb wire.Verb) (found []request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.requests {
		if r.verb == verb {
			found = append(found, *r)
		}
	}
	return found
}

// all returns copies of all requests.
func (g *gate) all() (found []request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.requests {
		found = append(found, *r)
	}
	return found
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, g.prefix) {
		http.NotFound(w, r) // a client of another test
		return
	}
	now := boottime.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	x := &exchange{gate: g, w: w, r: r, body: body, request: &request{verb: verbOf(r), method: r.Method, at: now}}
	json.Unmarshal(body, x.request) //nolint:errcheck // what is no object has no members
	do := pass
	g.change(func() {
		g.requests = append(g.requests, x.request)
		i := slices.IndexFunc(g.rules, func(one *answer) bool { return one.left > 0 && (one.verb == "" || one.verb == x.request.verb) })
		if i >= 0 {
			g.rules[i].left--
			do = g.rules[i].act
		}
	})
	defer g.change(func() { x.request.gone = true })
	do(x)
}

// verbOf is the verb of a request.
func verbOf(r *http.Request) wire.Verb {
	rest := strings.TrimPrefix(r.URL.Path, wire.PathElections)
	name, verb, custom := strings.Cut(rest, ":")
	_, part, inner := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	switch {
	case custom:
		return wire.Verb(verb)
	case inner && part == "events" && strings.Contains(r.Header.Get("Accept"), wire.StreamType):
		return wire.VerbWatch
	case inner && part == "checkpoint" && r.Method != http.MethodGet:
		return wire.VerbPutCheckpoint
	case inner:
		return wire.Verb(part)
	case r.Method == http.MethodGet:
		return wire.VerbRead
	}
	return wire.Verb(r.Method)
}

// exchange is a request at the gate, and its reply.
type exchange struct {
	*gate
	*request
	w    http.ResponseWriter
	r    *http.Request
	body []byte
}

// reply is an answer of the server.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// ask passes the request on, and returns the whole reply. It panics, so that the connection breaks,
// if there is none.
func (x *exchange) ask(ctx context.Context) reply {
	response := x.forward(ctx)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return x.edited(reply{response.StatusCode, response.Header, body})
}

func (x *exchange) forward(ctx context.Context) *http.Response {
	out, err := http.NewRequestWithContext(ctx, x.r.Method, x.target+x.r.URL.RequestURI(), bytes.NewReader(x.body))
	if err != nil {
		panic(err)
	}
	out.Header = x.r.Header.Clone()
	response, err := behind.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return response
}

// behind has the connections from gates to servers.
var behind = &http.Transport{MaxIdleConnsPerHost: 4, DisableCompression: true, IdleConnTimeout: 5 * time.Second}

// edited changes a success as the gate is told.
func (x *exchange) edited(a reply) reply {
	x.mu.Lock()
	edits := slices.Clone(x.edits)
	x.mu.Unlock()
	var object map[string]any
	numbers := json.NewDecoder(bytes.NewReader(a.body))
	numbers.UseNumber()
	if len(edits) == 0 || a.status != http.StatusOK || numbers.Decode(&object) != nil {
		return a
	}
	for _, e := range edits {
		e(x, object, a.header)
	}
	a.body, _ = json.Marshal(object)
	a.header.Del("Content-Length")
	return a
}

// answer gives a reply to the caller.
func (x *exchange) answer(a reply) {
	x.granted(a)
	x.head(a)
	x.w.Write(a.body)
}

func (x *exchange) head(a reply) {
	maps.Copy(x.w.Header(), a.header)
	x.w.WriteHeader(a.status)
}

// granted notes until when a lease lasts that a success gives, as far as its caller can know: from
// the arrival of the request, which is later than when it was sent.
func (x *exchange) granted(a reply) {
	var g struct {
		LeaderID              leadership.CandidateID
		FencingToken          leadership.Token
		ExpiresInMs, WaitedMs float64
	}
	heartbeat := x.verb == wire.VerbAcquire || x.verb == wire.VerbRenew
	if !heartbeat || a.status != http.StatusOK || json.Unmarshal(a.body, &g) != nil || g.LeaderID != x.CandidateID {
		return
	}
	x.change(func() {
		x.FencingToken = g.FencingToken
		x.until = x.at + time.Duration((g.WaitedMs+g.ExpiresInMs*drift)*float64(time.Millisecond))
	})
}

// drift is how much of a time counts, because clocks may differ.
const drift = 0.999

// The acts.

// pass passes the request on, and the reply back: at once if it is a stream.
func pass(x *exchange) {
	if strings.Contains(x.r.Header.Get("Accept"), wire.StreamType) {
		stream(x)
		return
	}
	x.answer(x.ask(x.r.Context()))
}

func stream(x *exchange) {
	response := x.forward(x.r.Context())
	defer response.Body.Close()
	x.head(reply{response.StatusCode, response.Header, nil})
	out := http.NewResponseController(x.w)
	out.Flush()
	buffer := make([]byte, 4<<10)
	for {
		n, err := response.Body.Read(buffer)
		x.w.Write(buffer[:n])
		out.Flush()
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// committed passes the request on however its caller fares.
func (x *exchange) committed() reply { return x.ask(context.WithoutCancel(x.r.Context())) }

// abort breaks the connection.
func abort() { panic(http.ErrAbortHandler) }

// lose has the request carried out, and breaks the connection.
func lose(x *exchange) {
	x.committed()
	abort()
}

// keep has the request carried out, and never answers.
func keep(x *exchange) {
	x.committed()
	<-x.r.Context().Done()
	abort()
}

// ignore does nothing, and never answers.
func ignore(x *exchange) {
	<-x.r.Context().Done()
	abort()
}

// after has the request carried out, and answers once the channel is closed.
func after(come <-chan struct{}) act {
	return func(x *exchange) {
		a := x.committed()
		select {
		case <-come:
			x.answer(a)
		case <-x.r.Context().Done():
			abort()
		}
	}
}

// late has the request carried out, and answers after that time.
func late(d time.Duration) act {
	return func(x *exchange) {
		come := make(chan struct{})
		defer time.AfterFunc(d, func() { close(come) }).Stop()
		after(come)(x)
	}
}

// say answers with a problem document, and nothing is done.
func say(code leadership.Code) act { return func(x *exchange) { x.problem(code, "") } }

// sayDone has the request carried out, and answers with a problem document.
func sayDone(code leadership.Code) act {
	return func(x *exchange) {
		x.committed()
		x.problem(code, "")
	}
}

// sayLater is say with a Retry-After of a second.
func sayLater(code leadership.Code) act { return func(x *exchange) { x.problem(code, "1") } }

func (x *exchange) problem(code leadership.Code, retryAfter string) {
	status := wire.MeaningOf(code).Status
	a := reply{status: status, header: http.Header{"Content-Type": {wire.ProblemType}}}
	a.body = fmt.Appendf(nil, `{"type":"about:blank","title":"No","status":%d,"detail":"the gate says so","code":%q,"requestId":"gate"`, status, code)
	if retryAfter != "" {
		a.header.Set("Retry-After", retryAfter)
		a.body = append(a.body, `,"retryAfterMs":1000`...)
	}
	a.body = append(a.body, '}')
	x.answer(a)
}

// foreign answers as something else than Regent does, and nothing is done.
func foreign(status int, contentType, body string) act {
	return func(x *exchange) {
		x.answer(reply{status, http.Header{"Content-Type": {contentType}}, []byte(body)})
	}
}

// instead answers a success that was carried out with another one.
func instead(of func(map[string]any)) act {
	return func(x *exchange) {
		a := x.committed()
		var object map[string]any
		numbers := json.NewDecoder(bytes.NewReader(a.body))
		numbers.UseNumber()
		if numbers.Decode(&object) == nil {
			of(object)
			a.body, _ = json.Marshal(object)
			a.header.Del("Content-Length")
		}
		x.head(a) // it is no grant
		x.w.Write(a.body)
	}
}

// redirect sends the caller elsewhere, and nothing is done.
func redirect(to string) act {
	return func(x *exchange) {
		x.head(reply{http.StatusTemporaryRedirect, http.Header{"Location": {to + x.r.URL.RequestURI()}}, nil})
	}
}

// slowly answers with a byte each time, and never comes to the end.
func slowly(each time.Duration) act {
	return func(x *exchange) {
		a := x.committed()
		a.header.Set("Content-Length", fmt.Sprint(len(a.body)+1))
		x.head(a)
		out := http.NewResponseController(x.w)
		for _, b := range a.body {
			x.w.Write([]byte{b})
			out.Flush()
			select {
			case <-time.After(each):
			case <-x.r.Context().Done():
				abort()
			}
		}
		ignore(x)
	}
}

// half answers with half of the reply, and breaks the connection.
func half(x *exchange) {
	a := x.committed()
	a.header.Set("Content-Length", fmt.Sprint(len(a.body)))
	x.head(a)
	x.w.Write(a.body[:len(a.body)/2])
	http.NewResponseController(x.w).Flush()
	abort()
}

// huge answers with a success that is followed by more than any client reads.
func huge(x *exchange) {
	a := x.committed()
	a.header.Del("Content-Length")
	x.head(a)
	x.w.Write(a.body)
	spaces := bytes.Repeat([]byte{' '}, 1<<20)
	for range 64 {
		if _, err := x.w.Write(spaces); err != nil {
			abort()
		}
	}
}

// torn breaks a stream in the middle of an event, or of several.
func torn(x *exchange) {
	response := x.forward(x.r.Context())
	defer response.Body.Close()
	x.head(reply{response.StatusCode, response.Header, nil})
	var text []byte
	for buffer := make([]byte, 4<<10); !bytes.Contains(text, []byte("data:")); {
		n, err := response.Body.Read(buffer)
		if err != nil {
			abort()
		}
		text = append(text, buffer[:n]...)
	}
	x.w.Write(text[:len(text)-10])
	http.NewResponseController(x.w).Flush()
	abort()
}

// inTurn treats one request after the other, and begins again after the last.
func inTurn(acts ...act) act {
	var n atomic.Int64
	return func(x *exchange) { acts[int(n.Add(1)-1)%len(acts)](x) }
}
