package hub

import (
	"context"
	"errors"
	"time"

	"regent/leadership"
)

// start finds the place where the feed begins. If that lies before the window, the window is widened first.
func (f *Feed) start(ctx context.Context) error {
	if err := f.journal.hub.wait(ctx, f.volume.ready, time.Time{}); err != nil {
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

// place lets the feed begin after its cursor, if the window reaches back that far.
func (f *Feed) place() (placed bool, err error) {
	f.journal.mu.Lock()
	defer f.journal.mu.Unlock()
	v, w := f.volume, f.volume.window
	switch {
	case v.err != nil:
		return false, v.err
	case f.cursor.IsZero():
		f.cursor, f.next = newCursor(w.mark), w.end()
	case w.reaches(f.cursor.at):
		f.next = w.place(f.cursor.at)
	case !f.cursor.at.After(v.compacted):
		return false, v.compaction
	default:
		return false, nil
	}
	return true, nil
}

// recall has the history asked for what came after the cursor. One feed at a time does so, for the others may then find what they want.
func (f *Feed) recall(ctx context.Context) error {
	j, v := f.journal, f.volume
	if err := j.hub.wait(ctx, v.recalls, time.Time{}); err != nil {
		return err
	}
	defer signal(v.recalls)
	if placed, err := f.place(); placed || err != nil {
		return err
	}
	began, from := time.Now(), j.from(v)
	recent, err := j.since(ctx, f.cursor.at.Add(-overlap))
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case v.err != nil:
		return v.err
	case errors.Is(err, leadership.HistoryCompacted):
		v.compacted, v.compaction = f.cursor.at, err
	case err == nil && from.Equal(v.window.from): // or entries were dropped that were not there yet when the history was read
		v.widen(recent, f.cursor.at, began)
		j.mu.wake(&v.news)
	}
	return err
}
