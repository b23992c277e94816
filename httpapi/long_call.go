package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// longCall is a call that may last, and the http.ResponseWriter of its handler.
type longCall struct {
	calls   *longCalls
	conn    net.Conn
	cancel  context.CancelFunc // of the handler's context
	arrived atomic.Bool        // the whole body of the request was read
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

// stay blocks net/http's goroutine until the call is answered, or its connection is taken over.
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

// takeOver takes the connection over from net/http, and reports whether it did. It cannot before
// the whole body was read, nor once a reply with a length has begun.
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

// await returns at once, and calls c.came when the next request begins to arrive or the caller
// leaves.
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

// came records the beginning of the next request, or the error that means that the caller has left.
// Only the first call counts. After a request that was sent before the answer to this one, it is
// not noticed that the caller leaves, as in net/http. It does not block.
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

// answered ends the call. The connection is kept for another one, or closed.
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

// pass gives the connection back to net/http, or closes it. Call once the call is answered and the
// next request, or an error, has come.
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

// finish ends a call whose handler has returned. If the connection was not taken over, net/http
// sends the rest of the reply.
func (c *longCall) finish(panicked any) {
	taken := c.conclude(panicked)
	if !taken {
		return
	}
	c.calls.open.end(c.conn)
	c.conn.SetWriteDeadline(time.Time{})
	c.answered(c.failed == nil && !c.close && !c.calls.stops())
}

// conclude ends the reply, and reports whether the connection is taken over. takeOver fails from
// now on.
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
		c.header = nil // takes no memory while the connection is silent
	}
	return c.w == nil
}
