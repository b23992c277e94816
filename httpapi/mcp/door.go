package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"regent/httpapi/access/authn"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
)

// Path is the path of a Door in a service.
const Path = "/mcp"

// DoorConfig configures a Door. API and Secret are required.
type DoorConfig struct {
	// API is the REST API of this process, which takes its caller from the context of a request:
	// see authn.With.
	API http.Handler
	// Admit, if it is not nil, is called before a body is read.
	Admit wire.Admit
	// Secret returns the secret that all instances on the store share: service.SharedSecret.
	Secret  func(context.Context) ([]byte, error)
	Version string       // of the program
	Log     *slog.Logger // gets a line per call of a tool, Debug; nil for none
	// Clock is the clock of leaders' deadlines; nil means that of package client.
	Clock func() time.Duration
}

// Door serves the tools over streamable HTTP, without sessions. The server in front must have
// authenticated callers, and refused foreign hosts and origins.
type Door struct {
	config  DoorConfig
	handler http.Handler
	seals   *seals
	desk    *desk

	mu     sync.Mutex
	terms  map[leadership.Key]*kept // by the key of the lease; guarded by mu
	counts map[string]int           // number of terms, by principal; guarded by mu
	closed bool                     // guarded by mu
}

// maxTerms is how many leases an instance keeps for a principal.
const maxTerms = 100

// kept is a lease that this instance keeps for a caller.
type kept struct {
	principal string
	key       leadership.Key
	turn      chan struct{} // capacity 1: holds a value while the lease is being confirmed

	term  *term       // nil until the lease is resumed; used only in its turn, and at the end of keep
	timer *time.Timer // fires at the end of keep; guarded by Door.mu
	due   time.Time   // the end of keep; guarded by Door.mu
}

// NewDoor returns a door. Close it before the API ends.
func NewDoor(c DoorConfig) (*Door, error) {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	d := &Door{config: c, seals: newSeals(c.Secret), terms: map[leadership.Key]*kept{}, counts: map[string]int{}}
	calls, err := d.connect(client.Config{})
	if err != nil {
		return nil, err
	}
	d.desk = &desk{calls: calls, connect: d.connect, begin: begin, actor: actor, terms: d, shared: true, log: c.Log}
	server := newServer(d.desk, c.Version)
	d.handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // the server's own check knows --allow-host
	})
	return d, nil
}

// connect returns a client that calls the API of this process, as the caller of each context.
func (d *Door) connect(c client.Config) (*client.Client, error) {
	c.Server, c.HTTP = "http://localhost", &http.Client{Transport: inside{d.config.API}}
	c.Log, c.Clock = slog.New(slog.DiscardHandler), d.config.Clock // the API logs
	c.Candidate.ID = cmp.Or(c.Candidate.ID, leadership.CandidateID("mcp-"+strings.ToLower(rand.Text())))
	return client.New(c)
}

// maxBody is the largest body of a request: the largest append, in JSON-RPC.
const maxBody = 1 << 20

// answerTime is how long a call may take in addition to its wait.
const answerTime = 40 * time.Second

type requestKey struct{}

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := d.serve(w, r); err != nil {
		p := wire.NewProblem(err)
		p.RequestID = leadership.RequestID(r.Context())
		p.Write(w, p)
	}
}

// leastCall is the least number of bytes that a call counts for until it is answered, which limits
// the calls of a principal in progress, however small they are.
const leastCall = 128 << 10

// anyTool is the row by which a request is admitted. The calls that its tool makes are admitted
// separately.
var anyTool = wire.Row{Verb: "callTools", Roles: wire.Roles(), Cost: wire.CostRead}

// serve answers a request, or returns an error.
func (d *Door) serve(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Path != Path {
		return &leadership.Error{Code: leadership.NotFound, Detail: "there is nothing here; the tools are at " + Path}
	}
	r, done, err := d.config.Admit.Request(w, r, wire.Admission{Row: &anyTool, Body: leastCall}, maxBody)
	if err != nil {
		return err
	}
	defer done()
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	// a tool may wait for longer than other calls of the server
	connection := http.NewResponseController(w)
	connection.SetReadDeadline(time.Time{}) // an error of these two calls means that the connection has no deadlines
	connection.SetWriteDeadline(time.Now().Add(maxWait + answerTime))
	ctx, cancel := outlasting(r.Context())
	defer cancel()
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	d.handler.ServeHTTP(w, r)
	return nil
}

// readBody reads the body of a request for the tools: one message, if there is one.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &leadership.Error{Code: wire.PayloadTooLarge, Detail: fmt.Sprintf("a request has at most %d bytes; send less in one call", tooLarge.Limit)}
	}
	switch {
	case err != nil:
		return nil, wire.RequestTimeout
	case bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")):
		return nil, &leadership.Error{Code: leadership.InvalidArgument, Detail: "the body is a batch of JSON-RPC, and the protocol has none any more; send each message in a request of its own"}
	case len(body) > 0 && !jsontext.Value(body).IsValid(): // the library would read only the first value
		return nil, &leadership.Error{Code: leadership.InvalidArgument, Detail: "the body is not one JSON value in UTF-8 whose names are there once; send a message of JSON-RPC 2.0"}
	}
	return body, nil
}

// lastWord is how long a call may take to answer with an error after its request has ended: the
// server may be about to stop.
const lastWord = time.Second

// outlasting returns a context for the library that ends lastWord after the request's, because the
// library drops the answer of a call when its context ends. It ends after maxWait and answerTime at
// the latest, so that no request lasts for ever.
func outlasting(request context.Context) (context.Context, context.CancelFunc) {
	ctx := context.WithValue(context.WithoutCancel(request), requestKey{}, request)
	ctx, cancel := context.WithTimeout(ctx, maxWait+answerTime)
	stop := context.AfterFunc(request, func() { time.AfterFunc(lastWord, cancel) })
	return ctx, func() {
		stop()
		cancel()
	}
}

// begin returns a context that ends with the call of the tool, and with the request that brought
// it, for the same cause.
func begin(ctx context.Context) (context.Context, context.CancelFunc) {
	call, end := context.WithCancelCause(caller(ctx))
	stops := []func() bool{context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })}
	if request, ok := ctx.Value(requestKey{}).(context.Context); ok {
		stops = append(stops, context.AfterFunc(request, func() { end(context.Cause(request)) }))
	}
	return call, func() {
		for _, stop := range stops {
			stop()
		}
		end(nil)
	}
}

// principalOf returns the pinned name of the caller; "" if callers are not authenticated.
func principalOf(ctx context.Context) string {
	if p, ok := authn.From(ctx); ok {
		return p.Pinned()
	}
	return ""
}

// actor returns the actor of orders if callers are not authenticated. Otherwise the API uses the
// principal.
func actor(ctx context.Context) string {
	if leadership.Actor(ctx) != "" {
		return ""
	}
	return "mcp"
}

func (d *Door) reserve(ctx context.Context, in leadInput) (*term, string, func(*term) (string, error), error) {
	principal := principalOf(ctx)
	if _, err := d.seals.cipher(ctx); err != nil { // otherwise a lease could be granted without a handle
		return nil, "", nil, err
	}
	if err := d.count(principal, 1); err != nil {
		return nil, "", nil, err
	}
	return nil, "", func(t *term) (string, error) {
		text, err := "", error(nil)
		if t != nil {
			text, err = d.settle(ctx, principal, t)
		}
		if t == nil || err != nil {
			_ = d.count(principal, -1)
		}
		return text, err
	}, nil
}

// settle stores a new lease, and returns its handle.
func (d *Door) settle(ctx context.Context, principal string, t *term) (string, error) {
	text, err := d.seals.seal(ctx, principal, handle{t.lease.Handle(), t.keep})
	if err != nil {
		return "", err
	}
	k := newKept(principal, t.lease.Handle().Key)
	k.term = t
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return "", wire.Draining
	}
	d.terms[k.key] = k
	d.attend(k, t.keep)
	return text, nil
}

// count adds more to the number of leases of a principal.
func (d *Door) count(principal string, more int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.countLocked(principal, more)
}

func (d *Door) countLocked(principal string, more int) error {
	n := d.counts[principal] + more
	switch {
	case d.closed && more > 0:
		return wire.Draining
	case n > maxTerms:
		return &leadership.Error{Code: leadership.LimitExceeded, Detail: fmt.Sprintf("you lead %d elections at this server, the most that it keeps for one caller; stop leading one first", maxTerms)}
	case n == 0:
		delete(d.counts, principal)
	default:
		d.counts[principal] = n
	}
	return nil
}

func newKept(principal string, key leadership.Key) *kept {
	return &kept{principal: principal, key: key, turn: make(chan struct{}, 1)}
}

// attend sets the end of keep. Call with mu held.
func (d *Door) attend(k *kept, keep time.Duration) {
	k.due = time.Now().Add(keep)
	if k.timer == nil {
		k.timer = time.AfterFunc(keep, func() { d.expire(k) })
		return
	}
	k.timer.Reset(keep)
}

// expire stops renewing a lease whose keep is over. It does not release it: another instance may
// renew it.
func (d *Door) expire(k *kept) {
	d.mu.Lock()
	used := time.Until(k.due) > 0 || d.terms[k.key] != k
	if !used {
		d.drop(k)
	}
	d.mu.Unlock()
	if !used {
		d.letEnd(k)
	}
}

// drop forgets a lease. Call with mu held.
func (d *Door) drop(k *kept) {
	if d.terms[k.key] == k {
		delete(d.terms, k.key)
		k.timer.Stop()
		_ = d.countLocked(k.principal, -1)
	}
}

// letEnd waits until no call uses the lease, and stops renewing it.
func (d *Door) letEnd(k *kept) {
	k.turn <- struct{}{}
	defer func() { <-k.turn }()
	if k.term != nil {
		k.term.lease.LetEnd()
	}
}

// take returns the lease of a handle, and its turn, which the caller must give back.
func (d *Door) take(ctx context.Context, text string) (*kept, handle, error) {
	principal := principalOf(ctx)
	h, err := d.seals.open(ctx, principal, text)
	if err != nil {
		return nil, handle{}, err
	}
	d.mu.Lock()
	k := d.terms[h.lease.Key]
	if k == nil {
		if err := d.countLocked(principal, 1); err != nil {
			d.mu.Unlock()
			return nil, handle{}, err
		}
		k = newKept(principal, h.lease.Key)
		d.terms[k.key] = k
	}
	d.attend(k, h.keep)
	d.mu.Unlock()
	select {
	case k.turn <- struct{}{}:
		return k, h, nil
	case <-ctx.Done():
		return nil, handle{}, context.Cause(ctx)
	}
}

func (d *Door) find(ctx context.Context, text string) (*term, error) {
	k, h, err := d.take(ctx, text)
	if err != nil {
		return nil, err
	}
	defer func() { <-k.turn }()
	err = d.confirm(ctx, k, h)
	if !errors.Is(err, leadership.LeaseLost) {
		return k.term, err
	}
	over := &overError{standing: standing{Election: h.lease.Election, CandidateID: h.lease.CandidateID, FencingToken: h.lease.Token}, err: err}
	if k.term != nil {
		over.standing, over.notices = k.term.standing(), k.term.heard()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop(k)
	return nil, over
}

// confirm ensures that this instance renews the lease, and that it is still the caller's in the
// store: another instance may have ended it. Call in the turn of k.
func (d *Door) confirm(ctx context.Context, k *kept, h handle) error {
	if k.term != nil && k.term.lease.Valid() {
		sent := time.Now()
		l, err := d.desk.calls.Get(ctx, h.lease.Election)
		switch own := k.term.lease; {
		case err != nil && !errors.Is(err, leadership.NotFound):
			return err
		case err == nil && l.State == leadership.Held && l.LeaderID == own.CandidateID() && l.Token == own.Token():
			_ = own.Report(known(l)) // it was valid when it was first sent
			k.term.see(l, sent)
			return nil
		}
		k.term.lease.LetEnd()
	}
	next := &term{keep: h.keep}
	if k.term != nil {
		h.lease.Token = k.term.lease.Token()
	}
	c, err := d.connect(client.Config{OnNotice: next.note})
	if err == nil {
		next.lease, err = c.Resume(ctx, h.lease)
	}
	if err != nil {
		return err
	}
	if k.term != nil {
		next.recall(k.term.heard())
	}
	k.term = next
	return nil
}

// known returns the counters of the report that the server has, which another instance may have
// sent, because no counter may fall.
func known(l leadership.Lease) client.Report {
	c := l.Report.Report().Counters
	return client.Report{Progress: c.Progress, Tasks: c.Tasks, TokensUsed: c.TokensUsed, Calls: c.Calls, Errors: c.Errors}
}

func (d *Door) stop(ctx context.Context, text string, end func(context.Context, *client.Lease) error) error {
	k, h, err := d.take(ctx, text)
	if err != nil {
		return err
	}
	defer func() { <-k.turn }()
	if err = d.confirm(ctx, k, h); err == nil {
		err = end(ctx, k.term.lease)
	}
	if err == nil || errors.Is(err, leadership.LeaseLost) { // over already
		d.mu.Lock()
		defer d.mu.Unlock()
		d.drop(k)
		return nil
	}
	return err
}

// Close stops renewing all leases, and accepts no more. It does not release them: other instances
// can renew them.
func (d *Door) Close() {
	d.mu.Lock()
	d.closed = true
	var all []*kept
	for _, k := range d.terms {
		d.drop(k)
		all = append(all, k)
	}
	d.mu.Unlock()
	for _, k := range all {
		d.letEnd(k)
	}
}

// overError is the error of a lease that is over.
type overError struct {
	standing
	notices []notice // since the caller's last call
	err     error
}

func (e *overError) Error() string { return e.err.Error() }

func (e *overError) Unwrap() error { return e.err }
