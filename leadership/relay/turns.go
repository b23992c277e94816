package relay

import (
	"context"
	"sync"

	"regent/leadership"
)

// turns lets one at a time publish events of an election.
type turns struct {
	mu    sync.Mutex // guards all below
	taken map[leadership.Election]*turn
}

// turn is that of one election.
type turn struct {
	taken chan struct{} // of one
	users int           // who has it, and who waits for it
}

// take waits for the election's turn and takes it, until it is given back by calling give. Its error is ctx's.
func (t *turns) take(ctx context.Context, e leadership.Election) (give func(), err error) {
	mine := t.join(e)
	select {
	case mine.taken <- struct{}{}:
		return func() {
			<-mine.taken
			t.leave(e)
		}, nil
	case <-ctx.Done():
		t.leave(e)
		return nil, ctx.Err()
	}
}

func (t *turns) join(e leadership.Election) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken[e] == nil {
		t.taken[e] = &turn{taken: make(chan struct{}, 1)}
	}
	t.taken[e].users++
	return t.taken[e]
}

func (t *turns) leave(e leadership.Election) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken[e].users--; t.taken[e].users == 0 {
		delete(t.taken, e)
	}
}
