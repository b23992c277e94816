package proxy

import "testing"

// Line passes TCP connections on to a server, until it is cut.
type Line struct{ hop *Hop }

// NewLine returns a line to the server at host:port, which lasts until the test ends.
func NewLine(tb testing.TB, target string) *Line {
	tb.Helper()
	return &Line{hop: newTestHop(tb, target)}
}

// newTestHop returns a hop that lasts until the test ends.
func newTestHop(tb testing.TB, target string) *Hop {
	tb.Helper()
	hop, err := NewHop(target)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { hop.Close() })
	return hop
}

// Addr is where the line listens.
func (l *Line) Addr() string { return l.hop.Addr() }

// Cut resets all connections, and each new one, until Heal.
func (l *Line) Cut() {
	l.hop.change(func(w *Conditions) { w.Refuse = true })
	l.hop.Reset()
}

// Stall passes nothing on and closes nothing, as an unplugged cable does, until Heal.
func (l *Line) Stall() {
	l.hop.change(func(w *Conditions) { w.Lost = [2]bool{true, true} })
}

// Heal undoes Cut and Stall. What Stall held up is passed on.
func (l *Line) Heal() { l.hop.Heal() }
