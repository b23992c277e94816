package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"regent/leadership/wire"
)

// longCalls serves the calls that may last: waiting candidates, long polls and streams. Most of a
// server's connections have one, and net/http spends 10 KiB of buffers and a goroutine with a deep
// stack on each. So after a moment the connection is taken over from net/http, which forgets it:
//
//	net/http --> ServeHTTP -- go --> handler .................................. answer
//	                 |                                                            |
//	                 +-- after a moment: takes the connection over                |
//	                            |                                                 |
//	                        arrivals: the next request or the caller's end ------ + --> net/http,
//	                                                                                    or closed
//
// The handler runs in a goroutine of its own, so that that of net/http can end, and notices
// nothing. Its ResponseWriter writes the reply as net/http would. When the caller sends the next
// request, net/http gets the connection back. HTTP/2, where a call has no connection of its own,
// and TLS are left as they are.
type longCalls struct {
	server  *http.Server
	handler http.Handler // of long calls
	others  http.Handler // of all other calls
	open    *connections
	after   time.Duration // when a connection is taken over

	serving sync.Once
	resumed chan net.Conn // for Accept
	closed  func()        // closes gone; idempotent
	gone    chan struct{} // closed when net/http accepts no connections any more
	buffers sync.Pool     // of *[]byte

	arrivals arrivals

	mu       sync.Mutex // guards the fields below
	taken    map[*longCall]struct{}
	stopping bool
	quiet    chan struct{} // closed once the server is stopping and nothing is taken any more
}

// takeOverAfter is how long a call lasts before its connection is taken over: longer than one that
// is answered by the store.
const takeOverAfter = 100 * time.Millisecond

// newLongCalls has the server's calls served by its handler, those that may last in a way that
// takes less memory.
func newLongCalls(server *http.Server, open *connections) *longCalls {
	l := &longCalls{
		server: server, handler: server.Handler, others: open.serve(server.Handler), open: open, after: takeOverAfter,
		resumed: make(chan net.Conn), gone: make(chan struct{}),
		buffers: sync.Pool{New: func() any { return new([]byte) }},
		taken:   map[*longCall]struct{}{}, quiet: make(chan struct{}),
	}
	l.closed = sync.OnceFunc(func() { close(l.gone) })
	server.Handler = l
	server.RegisterOnShutdown(l.stop)
	return l
}

// mayLast reports whether the call may wait, or is a stream, on a connection that can be taken
// over.
func mayLast(r *http.Request) bool {
	if r.ProtoMajor != 1 || r.ProtoMinor < 1 || r.TLS != nil {
		return false
	}
	switch r.Method {
	case http.MethodPost:
		return strings.HasSuffix(r.URL.Path, wire.Acquire)
	case http.MethodGet:
		return strings.HasSuffix(r.URL.Path, wire.Events) || strings.Contains(r.URL.RawQuery, "wait=")
	}
	return false
}

// mostEarly is how long a body may be to be read before the handler is called. It has mostly come
// together with the header.
const mostEarly = 2 << 10

// mayWait reports whether an acquire may wait. A goroutine for one that does not would cost a
// quarter of its CPU time, so it reads the body for the handler, if that is short.
func mayWait(r *http.Request) bool {
	if r.ContentLength <= 0 || r.ContentLength > mostEarly || r.Header["Expect"] != nil {
		return true
	}
	body := &earlyBody{read: make([]byte, r.ContentLength)}
	n, err := io.ReadFull(r.Body, body.read)
	body.read, body.err = body.read[:n], err
	r.Body = body
	return bytes.Contains(body.read, []byte(`"wait"`))
}

// earlyBody is the body of a request that was read before.
type earlyBody struct {
	read []byte
	err  error // that ended the reading; nil: none
}

func (b *earlyBody) Read(p []byte) (int, error) {
	if len(b.read) == 0 {
		return 0, cmp.Or(b.err, io.EOF)
	}
	n := copy(p, b.read)
	if b.read = b.read[n:]; len(b.read) == 0 {
		b.read = nil // while the call waits
	}
	return n, nil
}

// Close leaves the rest to net/http.
func (b *earlyBody) Close() error { return nil }

// ServeHTTP implements http.Handler.
func (l *longCalls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	on, known := r.Context().Value(connectionKey{}).(*connection)
	if !known || !mayLast(r) {
		l.others.ServeHTTP(w, r)
		return
	}
	l.open.begin(on.Conn)
	if r.Method == http.MethodPost && !mayWait(r) {
		defer l.open.end(on.Conn)
		l.others.ServeHTTP(w, r)
		return
	}
	c := &longCall{calls: l, conn: on.Conn, done: make(chan struct{}), w: w, header: w.Header(), close: r.Close}
	c.writeBy = time.Now().Add(l.server.WriteTimeout)
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(on.ctx)
	begun := r.WithContext(ctx)
	if _, early := r.Body.(*earlyBody); early || r.Body == http.NoBody {
		c.arrived.Store(true)
	} else {
		begun.Body = &longBody{c, r.Body}
	}
	go c.serve(begun)
	c.stay(r.Context())
}

// take reports whether a connection may be taken over now.
func (l *longCalls) take(c *longCall) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopping {
		l.taken[c] = struct{}{}
	}
	return !l.stopping
}

// drop forgets a connection that was closed or given back.
func (l *longCalls) drop(c *longCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.taken, c)
	l.arrivals.forget(c)
	if l.stopping && len(l.taken) == 0 {
		close(l.quiet)
	}
}

// stop is for a server that shuts down: no connection is taken over any more, and those that are
// end with their call.
func (l *longCalls) stop() {
	l.mu.Lock()
	if !l.stopping && len(l.taken) == 0 {
		close(l.quiet)
	}
	l.stopping = true
	l.mu.Unlock()
	l.open.hurry()
}

func (l *longCalls) stops() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopping
}

// wait blocks until no connection is taken any more. Call stop first.
func (l *longCalls) wait(ctx context.Context) error {
	select {
	case <-l.quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cut closes all connections.
func (l *longCalls) cut() {
	for _, c := range l.all() {
		c.Close()
	}
}

func (l *longCalls) all() []*longCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.taken))
}

// giveBack lets net/http serve the connection, on which something was read.
func (l *longCalls) giveBack(c net.Conn, read []byte) {
	l.serving.Do(func() { go l.server.Serve(l) })
	select {
	case l.resumed <- &resumed{Conn: c, read: read}:
	case <-l.gone:
		l.open.drop(c)
	}
}

// Accept implements net.Listener, for connections that net/http gets back.
func (l *longCalls) Accept() (net.Conn, error) {
	select {
	case c := <-l.resumed:
		return c, nil
	case <-l.gone:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *longCalls) Close() error {
	l.closed()
	return nil
}

// Addr implements net.Listener. Nothing asks for it.
func (l *longCalls) Addr() net.Addr { return &net.TCPAddr{} }

// resumed is a connection on which something was read before.
type resumed struct {
	net.Conn
	read  []byte
	begun bool // the next request has
}

// Read implements net.Conn. It leaves out empty lines before the next request, which a caller may
// send after a body (RFC 9112, section 2.2): net/http does so only after a body that it has read.
func (r *resumed) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil && len(p) > 0 {
		if n = copy(p, r.read); n > 0 {
			r.read = r.read[n:]
		} else {
			n, err = r.Conn.Read(p)
		}
		if !r.begun {
			n = copy(p, bytes.TrimLeft(p[:n], "\r\n"))
			r.begun = n > 0
		}
	}
	return n, err
}

// CloseWrite is for net/http, which lets a caller read the answer before it closes the connection.
func (r *resumed) CloseWrite() error {
	if c, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// plain returns the connection below a resumed one.
func plain(c net.Conn) net.Conn {
	if r, ok := c.(*resumed); ok {
		return r.Conn
	}
	return c
}

// longCall is a call that may last, and the http.ResponseWriter of its handler.
type longCall struct {
	calls   *longCalls
	conn    net.Conn
	cancel  context.CancelFunc // of the handler's context
	arrived atomic.Bool        // the request's body was read
	done    chan struct{}      // closed when the call is answered

	panicked any // by the handler, before the connection was taken; set before done is closed

	mu     sync.Mutex          // guards the fields below; held while something is written
	w      http.ResponseWriter // of net/http; nil once the connection is taken
	header http.Header         // of the reply
	status int                 // that was sent, or is to be; 0: none yet
	sent   bool                // the header was sent
	close  bool                // the connection serves no more calls
	over   bool                // the handler has returned
	out    *[]byte             // what was not sent yet; nil: nothing
	failed error               // of the connection

	deadlines sync.Mutex // guards the fields below; never held while something is written
	writeBy   time.Time
	taken     bool

	number uint64     // of arrivals
	turn   sync.Mutex // guards the fields below, of a connection that is taken; never held for long
	read   []byte     // of the next request
	left   error      // the caller has left, or the connection was closed
	next   bool       // read or left is set
	ready  bool       // the call is answered
	keep   bool       // the connection is fit for another call
	idle   *time.Timer
}

// longBody is the body of a request.
type longBody struct {
	c *longCall
	io.ReadCloser
}

// Read implements io.Reader. At its end it forgets net/http's reader, and the reader's buffer.
func (b *longBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.ReadCloser = http.NoBody
		b.c.arrived.Store(true)
	}
	return n, err
}

// stay keeps net/http's goroutine until the call is answered, or its connection taken.
func (c *longCall) stay(ctx context.Context) {
	ticks := time.NewTicker(c.calls.after)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			c.cancel()
			<-c.done
		case <-ticks.C:
			if ctx.Err() == nil && c.takeOver() {
				return
			}
			continue
		case <-c.done:
		}
		c.calls.open.end(c.conn)
		if c.cancel(); c.panicked != nil {
			panic(c.panicked)
		}
		return
	}
}

// serve runs the handler.
func (c *longCall) serve(r *http.Request) {
	defer close(c.done)
	defer func() { c.finish(recover()) }()
	c.calls.handler.ServeHTTP(c, r)
}

// takeOver takes the connection over from net/http, and reports whether it has. That is not
// possible while the body arrives.
func (c *longCall) takeOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.arrived.Load() || c.over || c.status != 0 && !c.chunked() || !c.calls.take(c) {
		return false
	}
	controller := http.NewResponseController(c.w)
	if c.status != 0 {
		if controller.Flush() != nil {
			c.calls.drop(c)
			return false
		}
		c.sent = true
	}
	c.deadlines.Lock()
	defer c.deadlines.Unlock()
	_, rw, err := controller.Hijack() // lifts the deadlines
	c.w, c.taken = nil, true
	c.calls.open.own(c.conn, c)
	if err != nil {
		c.failed = err
		c.came(nil, err)
		return true
	}
	c.conn.SetWriteDeadline(c.writeBy)
	if buffered, _ := rw.Reader.Peek(rw.Reader.Buffered()); len(buffered) > 0 {
		c.came(bytes.Clone(buffered), nil)
	} else {
		c.calls.await(c)
	}
	return true
}

// chunked reports whether a reply that was begun has no length.
func (c *longCall) chunked() bool { return c.header.Get("Content-Length") == "" && hasBody(c.status) }

// hasBody reports whether replies with the status have one.
func hasBody(status int) bool {
	return status >= http.StatusOK && status != http.StatusNoContent && status != http.StatusNotModified
}

// await has came called when the next request begins to arrive, or the caller leaves.
func (l *longCalls) await(c *longCall) {
	if l.arrivals.await(c) {
		return
	}
	go func() {
		var first [1]byte
		_, err := c.conn.Read(first[:])
		c.came(first[:], err)
	}()
}

// came takes the beginning of the next request, or the error that means that the caller has left. A
// caller that has sent its next request before the answer is not seen to leave; so it is with
// net/http. It does not block; the first call counts.
func (c *longCall) came(read []byte, left error) {
	c.turn.Lock()
	first, ready := !c.next, c.ready
	if first {
		c.next, c.read, c.left = true, read, left
		if c.idle != nil {
			c.idle.Stop()
		}
	}
	c.turn.Unlock()
	if !first {
		return
	}
	if left != nil {
		c.cancel()
	}
	if ready {
		go c.pass()
	}
}

// Close closes a connection that is taken, as if its caller had left.
func (c *longCall) Close() error {
	c.came(nil, net.ErrClosed)
	return c.conn.Close()
}

// answered is the end of the call: the connection is fit for another one, or is to be closed.
func (c *longCall) answered(keep bool) {
	c.turn.Lock()
	c.ready, c.keep = true, keep
	next := c.next
	if !next && keep {
		c.idle = time.AfterFunc(c.calls.server.IdleTimeout, func() { c.Close() })
	}
	c.turn.Unlock()
	switch {
	case next:
		c.pass()
	case !keep:
		c.Close()
	}
}

// pass passes the connection on, once the call is answered and the next one has come: to net/http,
// or it is closed.
func (c *longCall) pass() {
	c.cancel()
	defer c.calls.drop(c)
	if c.left == nil && c.keep {
		c.calls.open.own(c.conn, nil)
		c.calls.giveBack(c.conn, c.read)
	} else {
		c.calls.open.drop(c.conn)
	}
}

// finish sends what was not sent. If the connection was not taken, that is up to net/http.
func (c *longCall) finish(panicked any) {
	taken := c.conclude(panicked)
	if !taken {
		return
	}
	c.calls.open.end(c.conn)
	c.conn.SetWriteDeadline(time.Time{})
	c.answered(c.failed == nil && !c.close && !c.calls.stops())
}

// conclude ends the reply, and reports whether the connection is taken: it will not be any more.
func (c *longCall) conclude(panicked any) (taken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	aborted := panicked == http.ErrAbortHandler
	switch {
	case c.w != nil && panicked != nil && !aborted:
		c.panicked = fmt.Errorf("%v\n%s", panicked, debug.Stack())
	case c.w != nil:
		c.panicked = panicked
	case panicked == nil:
		c.send(true)
	case !aborted && c.calls.server.ErrorLog != nil:
		c.calls.server.ErrorLog.Printf("http: panic serving %v: %v\n%s", c.conn.RemoteAddr(), panicked, debug.Stack())
		fallthrough
	default:
		c.failed = http.ErrAbortHandler
	}
	if c.w == nil {
		c.header = nil // the connection may be silent for long
	}
	return c.w == nil
}

// Header implements http.ResponseWriter.
func (c *longCall) Header() http.Header { return c.header }

// WriteHeader implements http.ResponseWriter.
func (c *longCall) WriteHeader(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.w != nil {
		c.w.WriteHeader(status)
	}
	if c.status == 0 {
		c.status = status
	}
}

// Write implements http.ResponseWriter.
func (c *longCall) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == 0 {
		c.status = http.StatusOK
	}
	switch {
	case c.w != nil:
		return c.w.Write(p)
	case c.failed != nil:
		return 0, c.failed
	case !hasBody(c.status):
		return 0, http.ErrBodyNotAllowed
	case c.out == nil:
		c.out = c.calls.buffers.Get().(*[]byte)
	}
	*c.out = append(*c.out, p...)
	return len(p), nil
}

// Flush implements http.Flusher.
func (c *longCall) Flush() { c.FlushError() }

// FlushError is for http.ResponseController.
func (c *longCall) FlushError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == 0 {
		c.status = http.StatusOK
	}
	if c.w != nil {
		return http.NewResponseController(c.w).Flush()
	}
	c.send(false)
	return c.failed
}

// send sends what was written since the last time. A reply that is complete when it is first sent
// has a length, others are sent in chunks. Call with mu held.
func (c *longCall) send(complete bool) {
	if c.failed != nil {
		return
	}
	var body []byte
	if c.out != nil {
		body = *c.out
	}
	message := c.calls.buffers.Get().(*[]byte)
	whole := complete && !c.sent
	if !c.sent {
		c.sent = true
		*message = c.appendHeader(*message, body, whole)
	}
	switch {
	case whole:
		*message = append(*message, body...)
	case len(body) > 0:
		*message = fmt.Appendf(*message, "%x\r\n%s\r\n", len(body), body)
	}
	if complete && !whole && hasBody(c.status) {
		*message = append(*message, "0\r\n\r\n"...)
	}
	if _, c.failed = c.conn.Write(*message); c.failed != nil {
		c.cancel()
	}
	c.reuse(message)
	c.reuse(c.out)
	c.out = nil
}

// largestBuffer is how long a buffer may be to be used again.
const largestBuffer = 16 << 10

func (c *longCall) reuse(b *[]byte) {
	if b != nil && cap(*b) <= largestBuffer {
		*b = (*b)[:0]
		c.calls.buffers.Put(b)
	}
}

// appendHeader appends the status line and the header of the reply.
func (c *longCall) appendHeader(to, body []byte, whole bool) []byte {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	h := c.header
	if h.Get("Date") == "" {
		h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	switch {
	case !hasBody(c.status):
	case whole:
		h.Set("Content-Length", fmt.Sprint(len(body)))
	default:
		h.Set("Transfer-Encoding", "chunked")
	}
	if h.Get("Content-Type") == "" && len(body) > 0 {
		h.Set("Content-Type", http.DetectContentType(body))
	}
	if c.close = c.close || strings.EqualFold(h.Get("Connection"), "close") || c.calls.stops(); c.close {
		h.Set("Connection", "close")
	}
	b := bytes.NewBuffer(fmt.Appendf(to, "HTTP/1.1 %03d %s\r\n", c.status, http.StatusText(c.status)))
	h.Write(b) // into memory: no error
	b.WriteString("\r\n")
	return b.Bytes()
}

// SetReadDeadline is for http.ResponseController. On a connection that is taken nothing is read but
// the next request.
func (c *longCall) SetReadDeadline(t time.Time) error {
	c.deadlines.Lock()
	defer c.deadlines.Unlock()
	if c.taken {
		return nil
	}
	return c.conn.SetReadDeadline(t)
}

// SetWriteDeadline is for http.ResponseController. It does not wait for what is being written.
func (c *longCall) SetWriteDeadline(t time.Time) error {
	c.deadlines.Lock()
	defer c.deadlines.Unlock()
	c.writeBy = t
	return c.conn.SetWriteDeadline(t)
}
