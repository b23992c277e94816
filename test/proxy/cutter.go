package proxy

import "testing"

// Cutter passes TCP connections on to a server, and cuts each at an announced byte.
type Cutter struct {
	tb  testing.TB
	hop *Hop
}

// NewCutter returns a cutter in front of the server at host:port, which lasts until the test ends.
// It is for one connection at a time.
func NewCutter(tb testing.TB, target string) *Cutter {
	tb.Helper()
	hop := ForTest(tb, target)
	hop.onlyAnnounced()
	return &Cutter{tb: tb, hop: hop}
}

// Addr returns the address of the cutter.
func (c *Cutter) Addr() string { return c.hop.Addr() }

// Next announces the cut of the next connection, replacing an earlier announcement. A connection
// that was not announced is closed at once.
func (c *Cutter) Next(cut Cut) *Connection {
	p := newConnection(cut)
	p.lost = func(err error) { c.tb.Errorf("to the server: %v", err) }
	c.hop.announce(p)
	return p
}
