package storetest

import (
	"context"
	"sync"
)

// Counter counts the calls of stores. Its Count is the Around of a Fake.
type Counter struct {
	mu    sync.Mutex
	calls map[string]int // guarded by mu
}

// Count counts the call and passes it on.
func (n *Counter) Count(ctx context.Context, c Call, next func(context.Context) error) error {
	n.mu.Lock()
	if n.calls == nil {
		n.calls = make(map[string]int)
	}
	n.calls[c.Method]++
	n.mu.Unlock()
	return next(ctx)
}

// Take returns how often each method was called since the last Take.
func (n *Counter) Take() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	taken := n.calls
	n.calls = nil
	return taken
}
