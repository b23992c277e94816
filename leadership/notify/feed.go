package notify

import (
	"context"
	"errors"
	"strings"
	"time"

	"regent/leadership"
)

// Cursor is how far a feed has come: every event that was committed up to that instant of the store's clock was passed on. The zero Cursor is
// for whoever has seen nothing.
type Cursor struct{ at time.Time }

// String is the cursor as it travels; ParseCursor reads it.
func (c Cursor) String() string { return c.at.UTC().Format(time.RFC3339Nano) }

// IsZero says whether the cursor is the zero Cursor.
func (c Cursor) IsZero() bool { return c.at.IsZero() }

// ParseCursor reads what String wrote. The error says what is wrong, in a sentence.
func ParseCursor(text string) (Cursor, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.IsZero() || (Cursor{at}).String() != text {
		return Cursor{}, errors.New("a cursor is what a stream of all elections gave as the id of an event; leave it out to begin with how things are")
	}
	return Cursor{at}, nil
}

// ErrSlow ends a feed that has come too late: what it should have read next is no longer in memory. It resumes from its cursor, from the
// history.
var ErrSlow = errors.New("the feed was read too slowly")

// Item is one event of a feed, and the cursor to resume from once it was passed on.
type Item struct {
	Event  leadership.Event
	Cursor Cursor
}

// Feed gets every event of all elections whose names begin with a prefix: at least once, those of one election in order and without a gap.
// It belongs to one goroutine.
type Feed struct {
	journal *journal
	prefix  string
	wake    chan struct{}
	behind  []Item // from the history, to be passed on before anything else
	next    int    // the number of the entry to go on from
	cursor  Cursor
	err     error // guarded by the journal's mutex
}

// Feed returns a feed of what comes after the cursor or, with the zero Cursor, of what comes from now on, to be closed by its owner. It waits
// for the store. Errors: HistoryCompacted if the cursor lies too far back, and then it helps to begin with how things are; the
// store's; the cause that the Hub was closed with.
func (h *Hub) Feed(ctx context.Context, prefix string, after Cursor) (*Feed, error) {
	f := &Feed{journal: &h.journal, prefix: prefix, wake: make(chan struct{}, 1), cursor: after}
	f.journal.join(f)
	if err := f.start(ctx); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// start waits until there is a journal, and finds the place where the feed begins.
func (f *Feed) start(ctx context.Context) error {
	for {
		missed, err := f.journal.place(f)
		switch {
		case err == nil && missed != nil:
			return f.catchUp(ctx, missed)
		case !errors.Is(err, errNotBegun):
			return err
		}
		if err := f.wait(ctx); err != nil {
			return err
		}
	}
}

// wait waits to be woken. It returns ctx's error or the hub's cause.
func (f *Feed) wait(ctx context.Context) error {
	select {
	case <-f.wake:
		return nil
	case <-f.journal.hub.closed:
		return f.journal.hub.Cause()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// catchUp waits for what the feed has missed.
func (f *Feed) catchUp(ctx context.Context, m *missed) error {
	select {
	case <-m.done:
	case <-f.journal.hub.closed:
		return f.journal.hub.Cause()
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, e := range m.recent.Events {
		if strings.HasPrefix(string(e.Election), f.prefix) {
			f.behind = append(f.behind, Item{e, m.cursorAfter(e)})
		}
	}
	return m.err
}

// Cursor is what to resume from instead of this feed, as far as Next has returned.
func (f *Feed) Cursor() Cursor { return f.cursor }

// Next waits until there is something new, and returns it. Errors: ctx's; the cause that the Hub was closed with; ErrSlow; HistoryCompacted if
// so much has happened at once that nobody can tell all of it. But for ctx's, no other call helps: resume with another feed.
func (f *Feed) Next(ctx context.Context) ([]Item, error) {
	for {
		items, err := f.ready()
		if err != nil {
			return nil, err
		}
		if n := len(items); n > 0 {
			f.cursor = items[n-1].Cursor
			return items, nil
		}
		if err := f.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// ready returns what there is, without waiting for more.
func (f *Feed) ready() ([]Item, error) {
	if cause := f.journal.hub.Cause(); cause != nil {
		return nil, cause
	}
	if items := f.behind; items != nil {
		f.behind = nil
		return items, nil
	}
	j := f.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	if f.next < j.first {
		return nil, ErrSlow
	}
	var items []Item
	for _, e := range j.entries[f.next-j.first:] {
		if strings.HasPrefix(string(e.Election), f.prefix) {
			items = append(items, Item{e.Event, Cursor{latest(f.cursor.at, e.mark)}})
		}
	}
	f.next = j.first + len(j.entries)
	if len(items) == 0 {
		f.cursor = Cursor{latest(f.cursor.at, j.mark)}
	}
	return items, nil
}

// Close ends the feed.
func (f *Feed) Close() { f.journal.leave(f) }
