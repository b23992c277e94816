package proxy

import (
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// Hop passes TCP connections on to a server, and does to them what it is told. All its methods may be called at any time, from any
// goroutine; only Close waits. A connection that a Hop does not want is taken and then reset, which a client may see while it still connects.
type Hop struct {
	listener *net.TCPListener
	target   string
	passed   [2]atomic.Int64
	running  sync.WaitGroup

	mu       sync.Mutex // guards all below
	now      Weather
	changed  chan struct{} // closed when now is no longer so
	passages map[*Passage]struct{}
	opened   uint64   // passages so far
	next     *Passage // what the next connection becomes; nil for one that is not cut
	strict   bool     // without next a connection is refused
	closed   bool
}

// NewHop returns a hop to the server at host:port, which listens on a loopback port of its own until Close. The server is dialled for each
// connection; if it cannot be reached, the connection is closed with RST.
func NewHop(target string) (*Hop, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	h := newHop()
	h.listener, h.target = listener, target
	h.running.Go(h.accept)
	return h, nil
}

func newHop() *Hop {
	return &Hop{changed: make(chan struct{}), passages: make(map[*Passage]struct{})}
}

// Addr is where the hop listens.
func (h *Hop) Addr() string { return h.listener.Addr().String() }

// Close closes all connections with RST and listens no more. All goroutines are gone when it returns.
func (h *Hop) Close() error {
	err := h.listener.Close()
	h.quit()
	return err
}

func (h *Hop) quit() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.Reset()
	h.running.Wait()
}

// Set replaces what is in force at once, for open and for new connections, and for what is under way in them.
func (h *Hop) Set(w Weather) {
	h.change(func(now *Weather) { *now = w })
}

// Heal passes everything on again, and first what was held up. Connections that were reset or cut stay so.
func (h *Hop) Heal() { h.Set(Weather{}) }

// Reset closes all open connections with RST towards both sides, whatever the weather. What was under way in them is lost.
func (h *Hop) Reset() {
	for _, p := range h.open() {
		p.hangUp(true)
	}
}

// Cut cuts the next connection after so many bytes of that way, as Cutter does, with RST or with FIN towards both sides. Later ones are
// not cut, and one that is refused is not the next. Another Cut before that replaces this one; with a negative number there is none.
func (h *Hop) Cut(way Way, after int, reset bool) {
	h.announce(newPassage(Cut{Way: way, After: after, Reset: reset}))
}

// Passed is how many bytes have been passed on so far, of all connections.
func (h *Hop) Passed() (request, reply int64) {
	return h.passed[Request].Load(), h.passed[Reply].Load()
}

func (h *Hop) change(how func(*Weather)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	how(&h.now)
	close(h.changed)
	h.changed = make(chan struct{})
}

// weather is what is in force, and what is closed when it changes.
func (h *Hop) weather() (Weather, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now, h.changed
}

func (h *Hop) announce(p *Passage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next = p
}

// onlyAnnounced refuses all connections that were not announced.
func (h *Hop) onlyAnnounced() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.strict = true
}

func (h *Hop) open() []*Passage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.passages))
}

func (h *Hop) accept() {
	for {
		in, err := h.listener.AcceptTCP()
		if err != nil {
			return
		}
		p := h.admit(in)
		if p == nil {
			reset(in)
			continue
		}
		h.running.Go(func() {
			defer h.leave(p)
			p.serve(h.target)
		})
	}
}

// admit makes a passage of a connection; nil to refuse it.
func (h *Hop) admit(in end) *Passage {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.next
	if h.closed || h.now.Refuse || h.strict && p == nil {
		return nil
	}
	if p == nil {
		p = newPassage(uncut)
	}
	h.next = nil
	p.hop, p.number, p.ends = h, h.opened, []end{in}
	h.opened++
	h.passages[p] = struct{}{}
	return p
}

func (h *Hop) leave(p *Passage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.passages, p)
	p.over()
	close(p.done)
}
