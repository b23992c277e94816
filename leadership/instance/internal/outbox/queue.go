package outbox

import (
	"context"
	"sync"

	"regent/leadership"
	"regent/leadership/instance/internal/backoff"
)

// maxWaiting is how many events may wait to be announced. Those beyond it wait in the outbox.
const maxWaiting = 10_000

// queue holds the events passed to Publish, in a line for each election. Elections are served first
// come, first served. While one is served, by the announcer or a sweep, its line is busy.
type queue struct {
	wake chan struct{} // of one: there may be something to take

	mu      sync.Mutex // guards all below
	lines   map[leadership.Election]*line
	ready   []leadership.Election // whose lines wait to be served
	waiting int                   // events in all lines
	closed  bool
}

// line is the events of one election. It exists while it has any, or is busy.
type line struct {
	events []leadership.Event
	busy   bool
}

// put adds all events and reports true, or none and reports false if there is no room or the queue
// is closed.
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
	backoff.Signal(q.wake)
	return true
}

func (q *queue) add(e leadership.Event) {
	l, ok := q.lines[e.Election]
	if !ok {
		l = &line{}
		q.lines[e.Election] = l
		q.ready = append(q.ready, e.Election)
	}
	l.events = append(l.events, e)
}

// next blocks until there are events of an election that is not busy, and takes as many as one call
// of the topic may have. The caller must publish them and call done. It returns none once the queue
// is closed and empty, or when ctx has ended.
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
	for len(q.ready) > 0 {
		l := q.lines[q.ready[0]]
		q.ready = q.ready[1:]
		if l == nil || l.busy {
			continue // a sweep has claimed it meanwhile
		}
		n := min(len(l.events), maxPublish)
		events, l.events, l.busy = l.events[:n:n], l.events[n:], true
		q.waiting -= n
		return events, false
	}
	return nil, q.closed && len(q.lines) == 0
}

// claim makes an election busy until done is called, and reports whether it did: it does nothing if
// the election is busy already. Waiting events are dropped, for the caller finds them in the
// outbox.
func (q *queue) claim(e leadership.Election) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lines[e]; l != nil {
		if l.busy {
			return false
		}
		q.waiting -= len(l.events)
	}
	q.lines[e] = &line{busy: true}
	return true
}

// has reports whether events of an election wait here or are being published.
func (q *queue) has(e leadership.Election) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok := q.lines[e]
	return ok
}

// done ends the claim of an election.
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
	backoff.Signal(q.wake)
}

// close makes put refuse all further events.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	backoff.Signal(q.wake)
}
