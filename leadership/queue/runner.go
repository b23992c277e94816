package queue

import (
	"math"
	"time"
)

// never is when the head asks while an attempt is under way and nothing was learnt that says better.
const never = time.Duration(math.MaxInt64)

// run asks the store for one head after the other, until nobody stands in line any more.
func (l *line) run() {
	l.hearing.start(l.q.c.Hub, l.election)
	defer l.hearing.stop()
	for {
		a, idle, over := l.turn()
		switch {
		case over:
			return
		case a != nil:
			l.carryOut(a)
		default:
			l.sleep(idle)
		}
		l.listen()
	}
}

// turn says what to do: make an attempt, or be idle for so long, or end.
func (l *line) turn() (a *attempt, idle time.Duration, over bool) {
	closed := l.q.closed() != nil
	l.q.mu.Lock()
	defer l.q.mu.Unlock()
	now := l.q.c.Now()
	l.forgetForfeit(now, closed)
	if l.places.Len() == 0 {
		delete(l.q.lines, l.election)
		l.q.end()
		return nil, 0, true
	}
	if l.asking == nil && l.callers > 0 && !closed {
		if idle = l.due() - now; idle > 0 {
			return nil, min(idle, keep), false // and look again: timers stand still while the machine is suspended
		}
		l.asking = l.head()
	}
	if p := l.asking; p != nil {
		l.news, l.next = false, never
		return &attempt{place: p, caller: p.callers[len(p.callers)-1], request: p.request}, 0, false
	}
	return nil, keep, false
}

// due is when the head asks.
func (l *line) due() time.Duration {
	if l.hearing.live {
		return l.next
	}
	return min(l.next, l.poll)
}

// sleep waits until something has happened, at most so long.
func (l *line) sleep(idle time.Duration) {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.wake:
	case <-l.hearing.events.C():
	case <-l.hearing.doubts.C():
		l.hearing.doubt = true
	}
}
