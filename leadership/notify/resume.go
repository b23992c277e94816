package notify

import (
	"context"
	"errors"
	"slices"
	"time"

	"regent/leadership"
)

// errNotBegun says that there is no journal yet.
var errNotBegun = errors.New("no journal yet")

// join lets a feed hear of what is entered.
func (j *journal) join(f *Feed) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.feeds[f] = struct{}{}
	signal(j.wake)
}

func (j *journal) leave(f *Feed) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.feeds, f)
	signal(j.wake)
}

// place finds the entry where the feed begins. It returns what the feed has to wait for first, if what follows its cursor is not all in
// memory.
func (j *journal) place(f *Feed) (*missed, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	end := j.first + len(j.entries)
	switch {
	case j.mark.IsZero():
		return nil, errNotBegun
	case f.cursor.IsZero():
		f.next, f.cursor = end, Cursor{j.mark}
		return nil, nil
	case !f.cursor.at.Before(j.from):
		f.next = end
		if i := slices.IndexFunc(j.entries, func(e entry) bool { return e.At.After(f.cursor.at) }); i >= 0 {
			f.next = j.first + i
		}
		return nil, nil
	}
	m, shared := j.resumes[f.cursor]
	if !shared {
		m = &missed{done: make(chan struct{}), next: end}
		j.resumes[f.cursor] = m
		go j.recall(f.cursor, m)
	}
	f.next = m.next
	return m, nil
}

// missed is what came after a cursor, for all who resume from it at the same time.
type missed struct {
	next   int // the number of the entry to go on from
	done   chan struct{}
	recent leadership.Recent
	err    error
}

// recall reads what came after the cursor.
func (j *journal) recall(after Cursor, m *missed) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	m.recent, m.err = j.hub.history.Since(ctx, after.at)
	j.mu.Lock()
	delete(j.resumes, after)
	j.mu.Unlock()
	close(m.done)
}

// cursorAfter is the cursor once the event, and all before it, were passed on. The last ones may have company that was not there yet.
func (m *missed) cursorAfter(e leadership.Event) Cursor {
	return Cursor{earliest(e.At.Add(-time.Nanosecond), m.recent.Now.Add(-overlap))}
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
