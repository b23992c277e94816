package expiry

import (
	"container/heap"
	"context"
	"time"

	"regent/leadership"
)

// term is a lease that is kept in mind.
type term struct {
	election leadership.Election
	revision leadership.Revision
	due      time.Duration // Now when to look
	at       time.Duration // its place in the line: never after due, which a renewal moves without moving the place
	index    int           // in the line; -1 while a look is under way
	failed   int           // looks in a row
}

// keep keeps a lease in mind.
func (l *Lookout) keep(t *term) {
	l.terms[t.election] = t
	l.enqueue(t)
}

// forget drops a lease.
func (l *Lookout) forget(t *term) {
	delete(l.terms, t.election)
	if t.index >= 0 {
		heap.Remove(&l.line, t.index)
	}
}

// enqueue puts a lease in the line, and wakes who waits for another.
func (l *Lookout) enqueue(t *term) {
	t.at = t.due
	heap.Push(&l.line, t)
	if t.index > 0 {
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// How long to wait for the next lease.
const (
	minNap = 10 * time.Millisecond // ends that lie closer together are looked after together
	maxNap = time.Minute           // a timer stands still while the machine is suspended
)

// next waits for a lease to look after.
func (l *Lookout) next(ctx context.Context) (*term, error) {
	for {
		t, nap := l.first()
		if t != nil {
			return t, nil
		}
		timer := time.NewTimer(nap)
		select {
		case <-l.wake:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		timer.Stop()
	}
}

// first takes the lease out of the line that is due, or says how long to wait for one.
func (l *Lookout) first() (*term, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for len(l.line) > 0 {
		t := l.line[0]
		switch {
		case t.at > now:
			return nil, min(max(t.at-now, minNap), maxNap)
		case t.due > now: // it was renewed
			t.at = t.due
			heap.Fix(&l.line, 0)
		default:
			heap.Pop(&l.line)
			return t, 0
		}
	}
	return nil, maxNap
}

// line is a heap of leases by their place.
type line []*term

func (q line) Len() int           { return len(q) }
func (q line) Less(i, j int) bool { return q[i].at < q[j].at }

func (q line) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push is for package heap.
func (q *line) Push(t any) {
	t.(*term).index = len(*q)
	*q = append(*q, t.(*term))
}

// Pop is for package heap.
func (q *line) Pop() any {
	old := *q
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	t.index = -1
	return t
}
