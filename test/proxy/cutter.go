package proxy

import "testing"

// Cutter passes TCP connections on to a server, each up to a byte that was announced.
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

// Addr is where the cutter listens.
func (c *Cutter) Addr() string { return c.hop.Addr() }

// Next announces what becomes of the next connection, replacing an earlier announcement. A
// connection that was not announced is closed at once.
func (c *Cutter) Next(cut Cut) *Connection {
	p := newConnection(cut)
	p.lost = func(err error) { c.tb.Errorf("to the server: %v", err) }
	c.hop.announce(p)
	return p
}
