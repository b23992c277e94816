package proxy

import (
	"maps"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Hop passes TCP connections on to a server under the conditions that are set. All methods may be
// called at any time from any goroutine; only Close waits. A connection that a Hop refuses is
// accepted and then reset, which a client may see while it still connects.
type Hop struct {
	listener *net.TCPListener
	target   string
	running  sync.WaitGroup

	mu          sync.Mutex // guards all below
	now         Conditions
	changed     chan struct{} // closed when now is replaced
	connections map[*Connection]struct{}
	opened      uint64      // connections so far
	next        *Connection // the next connection to cut; nil for one that is not cut
	strict      bool        // without next a connection is refused
	closed      bool
}

// NewHop returns a hop to the server at host:port. It listens on a loopback port of its own until
// Close. The server is dialled for each connection; if it cannot be reached, the connection is
// closed with RST.
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

// ForTest returns a hop that lasts until the test ends.
func ForTest(tb testing.TB, target string) *Hop {
	tb.Helper()
	hop, err := NewHop(target)
	require.NoError(tb, err)
	tb.Cleanup(func() { hop.Close() })
	return hop
}

func newHop() *Hop {
	return &Hop{changed: make(chan struct{}), connections: make(map[*Connection]struct{})}
}

// Addr returns the address of the hop.
func (h *Hop) Addr() string { return h.listener.Addr().String() }

// Close closes all connections with RST and stops listening. All goroutines have ended when it
// returns.
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

// Set replaces the conditions at once, for open and new connections and for the bytes under way in
// them.
func (h *Hop) Set(w Conditions) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = w
	close(h.changed)
	h.changed = make(chan struct{})
}

// Heal passes everything on again, first the data that was held up. Connections that were reset or
// cut stay so.
func (h *Hop) Heal() { h.Set(Conditions{}) }

// Reset closes all open connections with RST towards both sides, in all conditions. Data in transit
// is lost.
func (h *Hop) Reset() {
	for _, p := range h.open() {
		p.hangUp(true)
	}
}

// CutOff resets all connections, and each new one, until Heal.
func (h *Hop) CutOff() {
	h.Set(Conditions{Refuse: true})
	h.Reset()
}

// Stall passes nothing on and closes nothing, as an unplugged cable does, until Heal.
func (h *Hop) Stall() { h.Set(Conditions{Lost: [2]bool{true, true}}) }

// Cut cuts the next connection after so many bytes in that direction, with RST or with FIN towards
// both sides. Later ones are not cut, and a refused one is not the next. Another Cut before that
// replaces this one; with a negative number there is none.
func (h *Hop) Cut(way Way, after int, reset bool) {
	h.announce(newConnection(Cut{Way: way, After: after, Reset: reset}))
}

// conditions returns the present conditions, and a channel that is closed when they change.
func (h *Hop) conditions() (Conditions, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now, h.changed
}

func (h *Hop) announce(p *Connection) {
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

func (h *Hop) open() []*Connection {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.connections))
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

// admit makes a Connection of an accepted one; nil to refuse it.
func (h *Hop) admit(in end) *Connection {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.next
	if h.closed || h.now.Refuse || h.strict && p == nil {
		return nil
	}
	if p == nil {
		p = newConnection(uncut)
	}
	h.next = nil
	p.hop, p.number, p.ends = h, h.opened, []end{in}
	h.opened++
	h.connections[p] = struct{}{}
	return p
}

func (h *Hop) leave(p *Connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.connections, p)
	p.over()
	close(p.done)
}
