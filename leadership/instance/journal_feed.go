package instance

import (
	"context"

	"regent/leadership"
)

// JournalFeed gets every entry of a journal after an index: once, in order and without a gap. It
// belongs to one goroutine.
type JournalFeed struct {
	journals *journals
	follow   *follow
	request  leadership.JournalRequest
	page     *leadership.JournalPage // read, and not returned yet
	left     func()                  // ends the reader's membership
	closed   func()
}

// Next blocks until there are entries, and returns them, or until ctx ends. A slow reader gets its
// entries from the store. While the store cannot be reached, Next waits.
//
// Errors: HistoryCompacted, if a snapshot has replaced the next entries; the others of ReadJournal;
// the cause of Drain.
func (f *JournalFeed) Next(ctx context.Context) (leadership.JournalPage, error) {
	for {
		if err := f.journals.hub.Cause(); err != nil {
			return leadership.JournalPage{}, err
		}
		if p := f.page; p != nil {
			if f.page = nil; len(p.Entries) > 0 {
				f.request.After, f.request.Generation = p.Entries[len(p.Entries)-1].Index, p.Generation
				return *p, nil
			}
		}
		page, more, err := f.journals.page(f.follow, f.request)
		switch {
		case err != nil:
			return leadership.JournalPage{}, err
		case more == nil && page == nil: // the feed is behind the window
			if page, err = f.journals.read(ctx, f.request); err != nil {
				return leadership.JournalPage{}, err
			}
			f.page = page
			continue
		case page != nil:
			f.page = page
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
			return leadership.JournalPage{}, ctx.Err()
		case <-f.journals.hub.Done():
		}
	}
}

// OnClose sets a function that is called once, when the feed is closed.
func (f *JournalFeed) OnClose(closed func()) { f.closed = closed }

// Close ends the feed. Idempotent.
func (f *JournalFeed) Close() {
	if f.follow != nil {
		f.journals.leave(f.follow)
		f.left()
		f.follow = nil
	}
	if f.closed != nil {
		f.closed()
		f.closed = nil
	}
}
