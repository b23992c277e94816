package pubsub_test

import (
	"net"
	"sync"
	"testing"
)

// proxy stands between an instance and the service, and can be cut.
type proxy struct {
	addr, target string

	mu     sync.Mutex // guards all below
	conns  map[net.Conn]struct{}
	closed bool          // new connections are refused
	flow   chan struct{} // closed while bytes flow
}

func newProxy(tb testing.TB, target string) *proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String(), target: target, conns: make(map[net.Conn]struct{}), flow: make(chan struct{})}
	close(p.flow)
	var accepting sync.WaitGroup
	accepting.Go(func() { p.accept(l) })
	tb.Cleanup(func() {
		l.Close()
		p.heal()
		p.cut()
		accepting.Wait()
	})
	return p
}

func (p *proxy) accept(l net.Listener) {
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil || !p.keep(in, out) {
			in.Close()
			continue
		}
		serving.Go(func() { p.copy(in, out) })
		serving.Go(func() { p.copy(out, in) })
	}
}

// keep remembers a pair of connections, unless the line is cut.
func (p *proxy) keep(in, out net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		out.Close()
		return false
	}
	p.conns[in], p.conns[out] = struct{}{}, struct{}{}
	return true
}

func (p *proxy) copy(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		<-p.flowing()
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

func (p *proxy) flowing() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flow
}

// cut closes all connections, and refuses new ones until heal.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

// swallow passes nothing on any more and closes nothing, as a cut cable does, until heal.
func (p *proxy) swallow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flow = make(chan struct{})
}

func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = false
	select {
	case <-p.flow:
	default:
		close(p.flow)
	}
}
