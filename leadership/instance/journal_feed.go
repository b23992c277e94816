package instance

import (
	"context"
	"time"

	"regent/leadership"
)

// journalLook is how often a follower looks for entries that another instance has appended.
const journalLook = time.Second

// JournalFeed gets every entry of a journal after an index: once, in order and without a gap. It
// belongs to one goroutine.
type JournalFeed struct {
	instance *Instance
	request  leadership.JournalRequest
	page     *leadership.JournalPage // read, and not returned yet
	closed   func()
}

// Next blocks until there are entries, and returns them, or until ctx ends. Errors are those of
// ReadJournal, and the cause of Drain.
func (f *JournalFeed) Next(ctx context.Context) (leadership.JournalPage, error) {
	for {
		if p := f.page; p != nil {
			if f.page = nil; len(p.Entries) > 0 {
				f.request.After = p.Entries[len(p.Entries)-1].Index
				return *p, nil
			}
		}
		select {
		case <-ctx.Done():
			return leadership.JournalPage{}, ctx.Err()
		case <-time.After(journalLook):
		}
		page, err := f.instance.ledger.ReadJournal(ctx, f.request)
		if err != nil {
			return page, err
		}
		f.page = &page
	}
}

// OnClose lets f be called once, when the feed is closed.
func (f *JournalFeed) OnClose(closed func()) { f.closed = closed }

// Close ends the feed. Idempotent.
func (f *JournalFeed) Close() {
	if f.closed != nil {
		f.closed()
		f.closed = nil
	}
}
