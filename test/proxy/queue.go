package proxy

import (
	"sync"
	"time"
)

// Limits of what one way of one connection holds.
const (
	maxPiece  = 16 << 10 // bytes
	maxHeld   = 1 << 20  // bytes, exceeded by one piece at most
	pieceCost = 64       // bytes that a piece counts for besides its data
)

// piece is what was read at once, or the end of it.
type piece struct {
	number uint64 // of all pieces of a Hop, however the goroutines run: see direction.number
	came   time.Time
	data   []byte
	// io.EOF if the sender has closed, else why it is gone; only the last piece has it, and it has
	// no data
	end error
}

// queue holds pieces in order, for one goroutine that puts and one that takes.
type queue struct {
	mu     sync.Mutex // guards all below
	moved  sync.Cond  // the queue has changed; only one of the two can be waiting
	pieces []piece
	held   int // bytes
}

func newQueue() *queue {
	q := &queue{}
	q.moved.L = &q.mu
	return q
}

// put waits until there is room.
func (q *queue) put(p piece) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.held >= maxHeld {
		q.moved.Wait()
	}
	q.pieces = append(q.pieces, p)
	q.held += len(p.data) + pieceCost
	q.moved.Signal()
}

// take waits until there is a piece.
func (q *queue) take() piece {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.pieces) == 0 {
		q.moved.Wait()
	}
	p := q.pieces[0]
	q.pieces[0] = piece{}
	q.pieces = q.pieces[1:]
	q.held -= len(p.data) + pieceCost
	q.moved.Signal()
	return p
}
