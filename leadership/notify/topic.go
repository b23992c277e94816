package notify

import (
	"slices"
	"time"

	"regent/leadership"
)

// topic is one election that somebody listens to. The hub's mutex guards it.
type topic struct {
	listeners map[*Listener]struct{}
	newest    leadership.Event   // of the highest revision that was heard or read
	tail      []leadership.Event // the last of those, in order and without a gap
	reads     map[leadership.Revision]*read

	// synced says that the history had nothing beyond revision end when somebody looked last, and that the hub would have been told of
	// what came since, if it is live.
	synced bool
	end    leadership.Revision
	looked time.Time
	futile int // looks in a row that have not found what was heard
}

// maxTail is how many events of one election are kept in memory while somebody listens to it.
const maxTail = 256

func newTopic() *topic {
	return &topic{listeners: make(map[*Listener]struct{}), reads: make(map[leadership.Revision]*read)}
}

// hear takes an event and wakes whoever listens, if it is news. After a gap it is not added to the tail: somebody has to read what lies
// between.
func (t *topic) hear(e leadership.Event) {
	if e.Revision <= t.newest.Revision {
		return
	}
	t.newest = e
	t.extend(e)
	t.wake()
}

// extend adds an event to the tail if it follows on it.
func (t *topic) extend(e leadership.Event) {
	if n := len(t.tail); n > 0 && e.Revision != t.tail[n-1].Revision+1 {
		return
	}
	t.tail = append(t.tail, e)
	if over := len(t.tail) - maxTail; over > 0 {
		t.tail = slices.Delete(t.tail, 0, over)
	}
}

// learn takes what was read from the history, in order and without a gap. What goes beyond the tail takes its place if it does not follow on
// it.
func (t *topic) learn(events []leadership.Event) {
	n := len(events)
	if n == 0 {
		return
	}
	if last := len(t.tail) - 1; last >= 0 && t.tail[last].Revision < events[0].Revision-1 {
		t.tail = nil
	}
	for _, e := range events {
		if last := len(t.tail) - 1; last < 0 || e.Revision > t.tail[last].Revision {
			t.extend(e)
		}
	}
	if newest := events[n-1]; newest.Revision > t.newest.Revision {
		t.newest = newest
		t.wake()
	}
}

// believe forgets what was heard and is not in the history, after some looks.
func (t *topic) believe() {
	if t.newest.Revision <= t.end {
		t.futile = 0
	} else if t.futile++; t.futile == maxFutile {
		t.newest, t.tail, t.futile = leadership.Event{Revision: t.end}, nil, 0
	}
}

// after is what the tail has after the revision; nothing if it does not reach back that far.
func (t *topic) after(r leadership.Revision) []leadership.Event {
	if len(t.tail) == 0 || t.tail[0].Revision > r+1 || r >= t.newest.Revision {
		return nil
	}
	i := min(int(r+1-t.tail[0].Revision), len(t.tail))
	return slices.Clone(t.tail[i:])
}

func (t *topic) wake() {
	for l := range t.listeners {
		l.wake()
	}
}
