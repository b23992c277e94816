// Package calls lets a store close its connection between calls. Closing it during a commit would
// make the commit's outcome unknown without need.
package calls

import (
	"errors"
	"sync"
)

// ErrClosed is the error of a call of a closed store.
var ErrClosed = errors.New("the store is closed")

// Gate counts the calls in progress. The zero Gate is open.
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

// Close admits no more calls and waits for those in progress. It reports whether this was its first
// call.
func (g *Gate) Close() bool {
	g.mu.Lock()
	first := !g.closed
	g.closed = true
	g.mu.Unlock()
	g.underWay.Wait()
	return first
}
