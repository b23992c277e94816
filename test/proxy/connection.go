package proxy

import (
	"context"
	"net"
	"sync"
	"time"
)

// Way is a direction of a connection.
type Way int

// The ways.
const (
	Request Way = iota // to the server
	Reply              // from it
)

// String returns the way's name.
func (w Way) String() string { return [...]string{"request", "reply"}[w] }

// Cut says where a connection ends: after so many bytes in one direction; with After 0, when the
// first byte would pass. Everything after that is dropped, in both directions.
type Cut struct {
	Way   Way
	After int  // negative for never
	Reset bool // end with RST, as a killed process does; else with FIN
}

// uncut never cuts.
var uncut = Cut{After: -1}

// end is one end of a connection: a *net.TCPConn.
type end interface {
	net.Conn
	CloseWrite() error
	SetLinger(seconds int) error
}

// Connection is one connection through a Hop or a Cutter.
type Connection struct {
	cut  Cut
	lost func(error) // called with the reason if the server was not reached; may be nil
	done chan struct{}

	hop        *Hop
	number     uint64          // among the connections of the hop
	ctx        context.Context // done when nothing passes any more
	over       context.CancelFunc
	directions [2]direction

	mu   sync.Mutex // guards ends
	ends []end      // the client's and, once it was reached, the server's
}

func newConnection(cut Cut) *Connection {
	p := &Connection{cut: cut, done: make(chan struct{})}
	p.ctx, p.over = context.WithCancel(context.Background())
	return p
}

// Wait returns when both sides have closed the connection. A server that answers a connection while
// it is open, and then closes it, has done everything by then. With Cut.Reset it waits for neither
// end.
func (p *Connection) Wait() { <-p.done }

// Passed returns the number of bytes that have passed in that direction. Call it after Wait.
func (p *Connection) Passed(w Way) int { return p.directions[w].passed }

// Dropped returns the number of bytes that arrived from that direction and did not pass. Call it
// after Wait; with Cut.Reset there may have been more.
func (p *Connection) Dropped(w Way) int { return p.directions[w].dropped }

// serve connects the client to the server, and returns when the connection is over.
func (p *Connection) serve(target string) {
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

// carry passes bytes both ways until both sides have closed, or the connection is over.
func (p *Connection) carry(out end) {
	if !p.join(out) {
		return
	}
	in := p.ends[0]
	p.directions[Request] = direction{conn: p, way: Request, from: in, to: out, queue: make(chan piece, maxHeld)}
	p.directions[Reply] = direction{conn: p, way: Reply, from: out, to: in, queue: make(chan piece, maxHeld)}
	var running sync.WaitGroup
	for way := range p.directions {
		running.Go(p.directions[way].read)
		running.Go(p.directions[way].write)
	}
	running.Wait()
	in.Close()
	out.Close()
}

// join adds the server's end, unless the connection is over already.
func (p *Connection) join(out end) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = append(p.ends, out)
	if p.ctx.Err() == nil {
		return true
	}
	reset(out)
	return false
}

// hangUp ends the connection towards both sides, in all conditions. Without a reset both are read
// until they close it too, because unread bytes would make a reset of it.
func (p *Connection) hangUp(rst bool) {
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

// await returns when the conditions let something pass. due returns the time from which it may
// pass, and whether it may at all. await returns false when the connection is over.
func (p *Connection) await(due func(Conditions) (time.Time, bool)) (Conditions, bool) {
	for {
		conditions, changed := p.hop.conditions()
		if p.ctx.Err() != nil {
			return conditions, false
		}
		var timer <-chan time.Time
		if at, ok := due(conditions); ok {
			wait := time.Until(at)
			if wait <= 0 {
				return conditions, true
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
