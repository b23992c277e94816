package hub

import (
	"context"
	"errors"
	"time"

	"regent/leadership"
)

// ErrSlow ends a feed that is read too slowly: its next events are no longer in memory. Another
// feed can resume from its cursor, unless that is too old by then.
var ErrSlow = errors.New("the feed was read too slowly")

// Item is one event of a feed, and the cursor to resume from once it was passed on.
type Item struct {
	Event  leadership.Event
	Cursor Cursor
}

// Feed gets every event of the selected elections; those of one election once, in order and without
// a gap. The first ones may be events that were already passed on before its cursor was taken. It
// belongs to one goroutine.
type Feed struct {
	hub     *Hub
	journal *journal
	which   leadership.Selection
	cursor  Cursor
	next    int // the number of the next entry; guarded by the mutex of the hub's feeds
	closed  func()
}

// Feed returns a feed of the events after the cursor or, with the zero Cursor, of all events that
// are committed after it has returned. The caller must close it. It blocks until the store has
// answered, and needs Run. Errors: HistoryCompacted if the cursor is too old, in which case the
// caller should begin with the present state; the store's; ctx's; the cause that the Hub was closed
// with.
func (h *Hub) Feed(ctx context.Context, which leadership.Selection, after Cursor) (*Feed, error) {
	f := &Feed{hub: h, which: which, cursor: after}
	h.feeds.join(f)
	if err := f.start(ctx); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// start finds the entry with which the feed begins. If that is before the window, it first widens
// the window.
func (f *Feed) start(ctx context.Context) error {
	if err := f.hub.wait(ctx, f.journal.ready, time.Time{}); err != nil {
		return err
	}
	for {
		if placed, err := f.place(); placed || err != nil {
			return err
		}
		if err := f.recall(ctx); err != nil {
			return err
		}
	}
}

// place starts the feed after its cursor, if the window reaches back that far.
func (f *Feed) place() (placed bool, err error) {
	f.hub.feeds.mu.Lock()
	defer f.hub.feeds.mu.Unlock()
	j, w := f.journal, f.journal.window
	switch {
	case j.err != nil:
		return false, j.err
	case f.cursor.IsZero():
		f.cursor, f.next = newCursor(w.mark), w.end()
	case !f.cursor.at.Before(w.from): // all heard events after it are in memory
		f.next = w.place(f.cursor.at)
	case !f.cursor.at.After(j.compacted):
		return false, j.compaction
	default:
		return false, nil
	}
	return true, nil
}

// recall reads the history after the cursor into the window. One feed at a time does so, because
// the others may then find their events in memory.
func (f *Feed) recall(ctx context.Context) error {
	s, j := &f.hub.feeds, f.journal
	select {
	case j.recalls <- struct{}{}:
		defer func() { <-j.recalls }()
	case <-f.hub.life.Done():
		return f.hub.Cause()
	case <-ctx.Done():
		return ctx.Err()
	}
	if placed, err := f.place(); placed || err != nil {
		return err
	}
	s.mu.Lock()
	began, from := time.Now(), j.window.from
	after := earliest(f.cursor.at, j.window.mark) // the window accepts no events with a gap before them
	s.mu.Unlock()
	recent, err := s.since(ctx, after.Add(-overlap))
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case j.err != nil:
		return j.err
	case errors.Is(err, leadership.HistoryCompacted):
		j.compacted, j.compaction = f.cursor.at, err
	case err == nil && from.Equal(j.window.from): // otherwise entries were dropped that came after the history was read
		risen := j.window.widen(recent.Events, f.cursor.at, recent.Now.Add(-overlap))
		for other := range j.feeds {
			if other.next >= j.window.first { // it is not too slow already
				other.next += risen
			}
		}
		j.settle(began)
		s.mu.wake(&j.news)
	}
	return err
}

// Next blocks until there are new events, and returns them, or the first part of many. Errors:
// ctx's; the cause that the Hub was closed with; ErrSlow; HistoryCompacted if there were too many
// events at once. Except after ctx's, do not call Next again: resume with another feed.
func (f *Feed) Next(ctx context.Context) ([]Item, error) {
	for {
		if err := f.hub.over(ctx); err != nil {
			return nil, err
		}
		items, more, err := f.page()
		if len(items) > 0 || err != nil {
			return items, err
		}
		if err := f.hub.wait(ctx, more, time.Time{}); err != nil {
			return nil, err
		}
	}
}

// maxItems is how many items a feed returns at once.
const maxItems = 256

// page returns the next selected entries. If there are none, more is closed when that may have
// changed.
func (f *Feed) page() (items []Item, more <-chan struct{}, err error) {
	f.hub.feeds.mu.Lock()
	defer f.hub.feeds.mu.Unlock()
	j, w := f.journal, f.journal.window
	switch {
	case j.err != nil:
		return nil, nil, j.err
	case f.next < w.first:
		return nil, nil, ErrSlow
	}
	for _, i := range w.entries[f.next-w.first:] {
		if len(items) == maxItems {
			break
		}
		f.next++
		f.cursor = f.cursor.later(i.Cursor)
		if f.which.Has(i.Event.Election) {
			items = append(items, Item{i.Event, f.cursor})
		}
	}
	return items, f.hub.feeds.mu.wait(&j.news), nil
}

// Cursor returns the cursor from which another feed continues after the events that Next has
// returned.
func (f *Feed) Cursor() Cursor {
	f.hub.feeds.mu.Lock()
	defer f.hub.feeds.mu.Unlock()
	if w := f.journal.window; f.next == w.end() {
		return f.cursor.later(newCursor(w.mark))
	}
	return f.cursor
}

// Close ends the feed. Idempotent.
func (f *Feed) Close() {
	f.hub.feeds.leave(f)
	if f.closed != nil {
		f.closed()
	}
}

// OnClose sets the one function that Close calls. Call it before the Feed is used.
func (f *Feed) OnClose(do func()) { f.closed = do }
