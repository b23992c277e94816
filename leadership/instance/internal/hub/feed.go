package hub

import (
	"context"
	"errors"
	"strings"
	"time"

	"regent/leadership"
)

// ErrSlow ends a feed that is read too slowly: what it should have returned next is no longer in memory. Another feed goes on from its cursor,
// if that does not lie too far back by then.
var ErrSlow = errors.New("the feed was read too slowly")

// Item is one event of a feed, and the cursor to resume from once it was passed on.
type Item struct {
	Event  leadership.Event
	Cursor Cursor
}

// Feed gets every event of all elections whose names begin with a prefix; those of one election once, in order and without a gap. What was
// passed on before its cursor was taken may be among the first. It belongs to one goroutine.
type Feed struct {
	journal *journal
	volume  *volume
	prefix  string
	cursor  Cursor
	next    int // the number of the entry to go on with; the journal's mutex guards it
	closed  func()
}

// Feed returns a feed of what comes after the cursor or, with the zero Cursor, of all that is committed once it has returned, to be closed by
// its owner. It waits for the store, and for Run. Errors: HistoryCompacted if the cursor lies too far back, and then it helps to begin with
// how things are; the store's; ctx's; the cause that the Hub was closed with.
func (h *Hub) Feed(ctx context.Context, prefix string, after Cursor) (*Feed, error) {
	f := &Feed{journal: h.journal, prefix: prefix, cursor: after}
	f.journal.join(f)
	if err := f.start(ctx); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Next waits until there is something new, and returns it, or the first part of much. Errors: ctx's; the cause that the Hub was closed with;
// ErrSlow; HistoryCompacted if so much has happened at once that nobody can tell all of it. But for ctx's, no other call helps: resume with
// another feed.
func (f *Feed) Next(ctx context.Context) ([]Item, error) {
	for {
		if err := f.journal.hub.over(ctx); err != nil {
			return nil, err
		}
		items, more, err := f.page()
		if len(items) > 0 || err != nil {
			return items, err
		}
		if err := f.journal.hub.wait(ctx, more, time.Time{}); err != nil {
			return nil, err
		}
	}
}

// maxItems is how many items a feed returns at once.
const maxItems = 256

// page returns what is for this feed among the next entries; if there is nothing, more is closed when that may have changed.
func (f *Feed) page() (items []Item, more <-chan struct{}, err error) {
	f.journal.mu.Lock()
	defer f.journal.mu.Unlock()
	v, w := f.volume, f.volume.window
	switch {
	case v.err != nil:
		return nil, nil, v.err
	case f.next < w.first:
		return nil, nil, ErrSlow
	}
	for _, i := range w.entries[f.next-w.first:] {
		if len(items) == maxItems {
			break
		}
		f.next++
		f.cursor = f.cursor.later(i.Cursor)
		if strings.HasPrefix(string(i.Event.Election), f.prefix) {
			items = append(items, Item{i.Event, f.cursor})
		}
	}
	return items, v.news.wait(), nil
}

// Cursor is what to resume from instead of this feed, as far as Next has returned.
func (f *Feed) Cursor() Cursor {
	f.journal.mu.Lock()
	defer f.journal.mu.Unlock()
	if w := f.volume.window; f.next == w.end() {
		return f.cursor.later(newCursor(w.mark))
	}
	return f.cursor
}

// Close ends the feed. To do it twice is the same as once.
func (f *Feed) Close() {
	f.journal.leave(f)
	if f.closed != nil {
		f.closed()
	}
}

// OnClose has do called by Close. There is one for each Feed, and it is set before the Feed is used.
func (f *Feed) OnClose(do func()) { f.closed = do }
