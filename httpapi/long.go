package httpapi

import (
	"context"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
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
// The handler runs in a goroutine of its own, so that net/http's goroutine can end. It sees no
// difference: its ResponseWriter writes the reply as net/http would. When the caller sends the next
// request, net/http gets the connection back. Connections of HTTP/2, which calls share, and of TLS
// are never taken over.
type longCalls struct {
	server  *http.Server
	handler http.Handler // of the server
	counted http.Handler // handler, with its calls counted by open
	open    *connections
	after   time.Duration // when a connection is taken over

	serving sync.Once
	resumed chan net.Conn // for Accept
	closed  func()        // closes gone; idempotent
	gone    chan struct{} // closed when net/http accepts no more connections
	buffers sync.Pool     // of *[]byte

	arrivals arrivals

	mu       sync.Mutex // guards the fields below
	taken    map[*longCall]struct{}
	stopping bool
	quiet    chan struct{} // closed once the server is stopping and taken is empty
}

// takeOverAfter is how long a call lasts before its connection is taken over: longer than one that
// is answered by the store.
const takeOverAfter = 100 * time.Millisecond

// newLongCalls replaces the handler of the server with one that calls it, in a way that takes less
// memory for the calls that may last.
func newLongCalls(server *http.Server, open *connections) *longCalls {
	l := &longCalls{
		server: server, handler: server.Handler, counted: open.serve(server.Handler), open: open, after: takeOverAfter,
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
		return strings.HasSuffix(r.URL.Path, wire.Acquire) || strings.HasSuffix(r.URL.Path, wire.AwaitAcknowledgement)
	case http.MethodGet:
		journal := strings.HasSuffix(r.URL.Path, wire.JournalPath) && strings.Contains(r.Header.Get("Accept"), wire.StreamType)
		return journal || strings.HasSuffix(r.URL.Path, wire.Events) || strings.Contains(r.URL.RawQuery, "wait=")
	}
	return false
}

// ServeHTTP implements http.Handler.
func (l *longCalls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	on, known := r.Context().Value(connectionKey{}).(*connection)
	if !known || !mayLast(r) {
		l.counted.ServeHTTP(w, r)
		return
	}
	l.open.begin(on.Conn)
	if r.Method == http.MethodPost && !mayWait(r) {
		defer l.open.end(on.Conn)
		l.handler.ServeHTTP(w, r)
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

// stop begins the shutdown: no further connection is taken over, and one that was taken over is
// closed when its call is answered.
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

// wait blocks until no connection is taken over. Call stop first.
func (l *longCalls) wait(ctx context.Context) error {
	select {
	case <-l.quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cut closes all connections that are taken over.
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
