package proxy

import (
	"context"
	"net"
	"sync"
	"time"
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

// uncut is the cut that never comes.
var uncut = Cut{After: -1}

// end is one end of a connection: a *net.TCPConn.
type end interface {
	net.Conn
	CloseWrite() error
	SetLinger(seconds int) error
}

// Passage is one connection through a Hop or a Cutter.
type Passage struct {
	cut  Cut
	lost func(error) // is told why the server was not reached; nil to tell nobody
	done chan struct{}

	hop    *Hop
	number uint64          // of the passages of the hop
	ctx    context.Context // done when nothing passes any more
	over   context.CancelFunc
	lanes  [2]lane

	mu   sync.Mutex // guards ends
	ends []end      // the client's, and the server's once it was reached
}

func newPassage(cut Cut) *Passage {
	p := &Passage{cut: cut, done: make(chan struct{})}
	p.ctx, p.over = context.WithCancel(context.Background())
	return p
}

// Wait returns once both sides have closed the connection: a server that answers a connection for as long as it is open, and closes it after that,
// has then done all that it will. With Cut.Reset nobody is waited for.
func (p *Passage) Wait() { <-p.done }

// Passed is how many bytes have passed that way. Call it after Wait.
func (p *Passage) Passed(w Way) int { return p.lanes[w].passed }

// Dropped is how many bytes came that way and did not pass. Call it after Wait; with Cut.Reset there may have been more.
func (p *Passage) Dropped(w Way) int { return p.lanes[w].dropped }

// serve connects the client to the server, and returns when all is over.
func (p *Passage) serve(target string) {
	out, err := new(net.Dialer).DialContext(p.ctx, "tcp", target)
	if err != nil {
		if p.lost != nil && p.ctx.Err() == nil {
			p.lost(err)
		}
		p.hangUp(true)
		return
	}
	p.carry(out.(*net.TCPConn))
}

// carry passes bytes both ways between the client and the server until both have closed, or all is over.
func (p *Passage) carry(out end) {
	if !p.join(out) {
		return
	}
	in := p.ends[0]
	p.lanes[Request] = lane{passage: p, way: Request, from: in, to: out, queue: newQueue()}
	p.lanes[Reply] = lane{passage: p, way: Reply, from: out, to: in, queue: newQueue()}
	var running sync.WaitGroup
	for way := range p.lanes {
		running.Go(p.lanes[way].read)
		running.Go(p.lanes[way].write)
	}
	running.Wait()
	in.Close()
	out.Close()
}

// join adds the server's end, unless all is over already.
func (p *Passage) join(out end) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = append(p.ends, out)
	if p.ctx.Err() == nil {
		return true
	}
	reset(out)
	return false
}

// hangUp ends the passage towards both sides, whatever the weather. Without a reset both are read until they close it too, for unread
// bytes would make a reset of it.
func (p *Passage) hangUp(rst bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over()
	for _, e := range p.ends {
		if rst {
			reset(e)
		} else {
			e.CloseWrite()
		}
	}
}

// reset closes a connection with RST.
func reset(e end) {
	e.SetLinger(0)
	e.Close()
}

// await returns once the weather lets something through, which due decides by a time and whether it may at all; or false, once all is over.
func (p *Passage) await(due func(Weather) (time.Time, bool)) (Weather, bool) {
	for {
		weather, changed := p.hop.weather()
		if p.ctx.Err() != nil {
			return weather, false
		}
		var timer <-chan time.Time
		if at, ok := due(weather); ok {
			wait := time.Until(at)
			if wait <= 0 {
				return weather, true
			}
			timer = time.After(wait)
		}
		select {
		case <-timer:
		case <-changed:
		case <-p.ctx.Done():
		}
	}
}
