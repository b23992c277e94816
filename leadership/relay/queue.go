package relay

import (
	"context"
	"sync"

	"regent/leadership"
)

// maxWaiting is how many events may wait to be announced. Those beyond it wait in the outbox.
const maxWaiting = 10_000

// queue holds what the announcer was told of, a line for each election. Elections are served first come first served, none by two at a time.
type queue struct {
	wake chan struct{} // of one: there may be something to take

	mu      sync.Mutex // guards all below
	lines   map[leadership.Election]*line
	ready   []leadership.Election // whose lines wait to be served
	waiting int                   // events in all lines
	closed  bool
}

// line is the events of one election. It is there while it has any, or is being served.
type line struct {
	events []leadership.Event
	busy   bool // being served
}

// put puts events in, all of them or, if there is no room for so many or the queue is closed, none. It says which.
func (q *queue) put(events []leadership.Event) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.waiting+len(events) > maxWaiting {
		return false
	}
	for _, e := range events {
		q.add(e)
	}
	q.waiting += len(events)
	signal(q.wake)
	return true
}

func (q *queue) add(e leadership.Event) {
	l, ok := q.lines[e.Election]
	if !ok {
		l = &line{}
		q.lines[e.Election] = l
	}
	if len(l.events) == 0 && !l.busy {
		q.ready = append(q.ready, e.Election)
	}
	l.events = append(l.events, e)
}

// next waits for events of an election that nobody serves, and takes them. Whoever serves them calls done. It returns nothing once the queue is
// closed and all has been served, or when ctx has ended.
func (q *queue) next(ctx context.Context) []leadership.Event {
	for {
		events, over := q.take()
		if len(events) > 0 || over {
			return events
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

func (q *queue) take() (events []leadership.Event, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ready) == 0 {
		return nil, q.closed && len(q.lines) == 0
	}
	l := q.lines[q.ready[0]]
	q.ready = q.ready[1:]
	events, l.events, l.busy = l.events, nil, true
	q.waiting -= len(events)
	return events, false
}

// done says that what was taken of an election has been served.
func (q *queue) done(e leadership.Election) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[e]
	l.busy = false
	if len(l.events) > 0 {
		q.ready = append(q.ready, e)
	} else {
		delete(q.lines, e)
	}
	signal(q.wake)
}

// close lets nothing more in.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	signal(q.wake)
}
