package proxy

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Way is one of the two ways of a connection.
type Way int

// The ways.
const (
	Request Way = iota // to the server
	Reply              // from it
)

// String is the word for it.
func (w Way) String() string { return [...]string{"request", "reply"}[w] }

// Cut says where a connection ends: as soon as so many bytes have passed the one way and, with After 0, as soon as the first would pass.
// What else comes goes nowhere, either way.
type Cut struct {
	Way   Way
	After int  // negative for never
	Reset bool // the connection ends with RST, as that of a process that was killed; else with FIN
}

// Cutter passes TCP connections on to a server, each up to a byte that was said before.
type Cutter struct {
	tb       testing.TB
	listener *net.TCPListener
	target   *net.TCPAddr
	next     chan *Passage
}

// Passage is one connection through a Cutter.
type Passage struct {
	cut  Cut
	over atomic.Bool // nothing passes any more
	done chan struct{}

	in, out         *net.TCPConn // from the client, to the server
	passed, dropped [2]int       // bytes each way, each set by its own goroutine until done is closed
}

// NewCutter returns a cutter in front of the server at host:port, which lasts until the test ends. It is for one connection at a time.
func NewCutter(tb testing.TB, target string) *Cutter {
	tb.Helper()
	addr, err := net.ResolveTCPAddr("tcp", target)
	if err != nil {
		tb.Fatal(err)
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		tb.Fatal(err)
	}
	c := &Cutter{tb: tb, listener: listener, target: addr, next: make(chan *Passage, 1)}
	var accepting sync.WaitGroup
	accepting.Go(c.accept)
	tb.Cleanup(func() {
		listener.Close()
		accepting.Wait()
	})
	return c
}

// Addr is where the cutter listens.
func (c *Cutter) Addr() string { return c.listener.Addr().String() }

// Next says what becomes of the next connection. One that was not announced is closed at once.
func (c *Cutter) Next(cut Cut) *Passage {
	p := &Passage{cut: cut, done: make(chan struct{})}
	c.next <- p
	return p
}

// Wait returns once both sides have closed the connection: a server that answers a connection for as long as it is open, and closes it after that,
// has then done all that it will. With Cut.Reset nobody is waited for.
func (p *Passage) Wait() { <-p.done }

// Passed is how many bytes have passed that way. Call it after Wait.
func (p *Passage) Passed(w Way) int { return p.passed[w] }

// Dropped is how many bytes came that way and did not pass. Call it after Wait; with Cut.Reset there may have been more.
func (p *Passage) Dropped(w Way) int { return p.dropped[w] }

func (c *Cutter) accept() {
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		in, err := c.listener.AcceptTCP()
		if err != nil {
			return
		}
		select {
		case p := <-c.next:
			p.in = in
			serving.Go(func() { c.serve(p) })
		default:
			in.Close()
		}
	}
}

func (c *Cutter) serve(p *Passage) {
	defer close(p.done)
	defer p.in.Close()
	var err error
	if p.out, err = net.DialTCP("tcp", nil, c.target); err != nil {
		c.tb.Errorf("to the server: %v", err)
		return
	}
	defer p.out.Close()
	var replies sync.WaitGroup
	replies.Go(func() { p.pass(Reply, p.out, p.in) })
	p.pass(Request, p.in, p.out)
	replies.Wait()
}

// pass carries bytes one way until the sender has closed it.
func (p *Passage) pass(w Way, from, to *net.TCPConn) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		p.carry(w, buffer[:n], to)
		if err != nil {
			to.CloseWrite()
			return
		}
	}
}

func (p *Passage) carry(w Way, chunk []byte, to *net.TCPConn) {
	cutting := p.cut.Way == w && p.cut.After >= 0
	pass := len(chunk)
	switch {
	case p.over.Load():
		pass = 0
	case cutting:
		pass = min(pass, p.cut.After-p.passed[w])
	}
	to.Write(chunk[:pass]) // it fails when the other side is gone, which is then noticed there
	p.passed[w] += pass
	p.dropped[w] += len(chunk) - pass
	if cutting && len(chunk) > 0 && p.passed[w] == p.cut.After {
		p.end()
	}
}

// end closes the connection towards both sides. Without a reset both are read until they close it too, for unread bytes would make a reset of it.
func (p *Passage) end() {
	if p.over.Swap(true) {
		return
	}
	for _, c := range []*net.TCPConn{p.in, p.out} {
		if p.cut.Reset {
			c.SetLinger(0)
			c.Close()
		} else {
			c.CloseWrite()
		}
	}
}
