package proxy

import (
	"net"
	"sync"
	"testing"
)

// Line passes TCP connections on to a server, until it is cut.
type Line struct {
	listener net.Listener
	target   string

	mu    sync.Mutex // guards all below
	conns map[net.Conn]struct{}
	cut   bool          // new connections are closed at once
	flow  chan struct{} // closed while bytes flow
}

// NewLine returns a line to the server at host:port, which lasts until the test ends.
func NewLine(tb testing.TB, target string) *Line {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	l := &Line{listener: listener, target: target, conns: make(map[net.Conn]struct{}), flow: make(chan struct{})}
	close(l.flow)
	var accepting sync.WaitGroup
	accepting.Go(l.accept)
	tb.Cleanup(func() {
		listener.Close()
		l.Heal()
		l.Cut()
		accepting.Wait()
	})
	return l
}

// Addr is where the line begins.
func (l *Line) Addr() string { return l.listener.Addr().String() }

// Cut closes all connections, and each new one, until Heal.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for c := range l.conns {
		c.Close()
	}
	clear(l.conns)
}

// Stall passes nothing on and closes nothing, as a cable that was pulled out does, until Heal.
func (l *Line) Stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flow = make(chan struct{})
}

// Heal undoes Cut and Stall. What was held up by Stall is passed on.
func (l *Line) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
	select {
	case <-l.flow:
	default:
		close(l.flow)
	}
}

func (l *Line) accept() {
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		in, err := l.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", l.target)
		if err != nil {
			in.Close()
			continue
		}
		if !l.keep(in, out) {
			in.Close()
			out.Close()
			continue
		}
		serving.Go(func() { l.pass(in, out) })
		serving.Go(func() { l.pass(out, in) })
	}
}

// keep remembers a pair of connections, unless the line is cut.
func (l *Line) keep(in, out net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return false
	}
	l.conns[in], l.conns[out] = struct{}{}, struct{}{}
	return true
}

func (l *Line) pass(from, to net.Conn) {
	defer func() {
		from.Close()
		to.Close()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.conns, from)
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		<-l.flowing()
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

func (l *Line) flowing() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flow
}
