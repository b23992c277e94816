// Package calls lets a store end its connection between calls. To close it beneath a commit would
// leave the commit's outcome unknown for no reason.
package calls

import (
	"errors"
	"sync"
)

// ErrClosed refuses a call of a store that is closed.
var ErrClosed = errors.New("the store is closed")

// Gate counts the calls under way. The zero Gate is open.
type Gate struct {
	mu       sync.Mutex // guards closed, and that none enters once it is set
	closed   bool
	underWay sync.WaitGroup
}

// Enter begins a call. It returns ErrClosed after Close.
func (g *Gate) Enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrClosed
	}
	g.underWay.Add(1)
	return nil
}

// Leave ends a call that Enter has begun.
func (g *Gate) Leave() { g.underWay.Done() }

// Close lets no more calls in and waits for those under way. It reports whether it was the first to
// do so.
func (g *Gate) Close() bool {
	g.mu.Lock()
	first := !g.closed
	g.closed = true
	g.mu.Unlock()
	g.underWay.Wait()
	return first
}
