package file

import (
	"context"
	"sync"
)

// horizon is the last durable transaction of the file. bbolt shows a transaction to readers once it
// is written and before it is synced; data that a reader has seen must not leave this package while
// a power cut could still undo it.
type horizon struct {
	mu    sync.Mutex
	last  int           // the newest durable transaction; guarded by mu
	moved chan struct{} // closed, and replaced, whenever there is news; guarded by mu
}

// move notes that everything up to the transaction is durable; with 0 it only wakes those that
// wait.
func (h *horizon) move(id int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = max(h.last, id)
	close(h.moved)
	h.moved = make(chan struct{})
}

// look reports whether the transaction is durable. If it is not, moved is closed at the next
// change.
func (h *horizon) look(id int) (durable bool, moved <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return id <= h.last, h.moved
}

// await waits until the transaction that a reader saw is durable, or will never be.
func (w *writer) await(ctx context.Context, id int) error {
	for {
		durable, moved := w.durable.look(id)
		if durable {
			return nil
		}
		if failed := w.failed.Load(); failed != nil {
			return *failed
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return unavailable(ctx.Err())
		}
	}
}
