package hub

import (
	"context"
	"errors"
	"time"

	"regent/leadership"
)

// journal is what happened lately in all elections, for all feeds of the hub. It is kept while there are any.
type journal struct {
	hub  *Hub
	size int           // of the windows
	wake chan struct{} // run

	mu     wakeMutex // guards all below, the volumes, and where the feeds are
	volume *volume   // nil while there are no feeds
}

// join lets a feed hear of what is entered.
func (j *journal) join(f *Feed) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.volume == nil {
		j.volume = newVolume(j.size)
		signal(j.wake)
	}
	f.volume = j.volume
	f.volume.feeds[f] = struct{}{}
}

func (j *journal) leave(f *Feed) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(f.volume.feeds, f)
	if len(f.volume.feeds) == 0 {
		j.drop(f.volume)
	}
}

// drop forgets the volume. Who joins begins another.
func (j *journal) drop(v *volume) {
	if j.volume == v {
		j.volume = nil
		signal(j.wake)
	}
}

// hear takes events.
func (j *journal) hear(events []leadership.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	v := j.volume
	if v == nil {
		return
	}
	entered := false
	for _, e := range events {
		entered = v.hear(e) || entered
	}
	if entered {
		j.mu.wake(&v.news)
	}
	signal(j.wake) // a look may be due sooner than it was
}

// doubt says that events may have been missed.
func (j *journal) doubt() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.volume != nil {
		j.volume.stale = true
		signal(j.wake)
	}
}

// run looks into the history whenever that is due, until ctx ends or the hub is closed.
func (j *journal) run(ctx context.Context) {
	for {
		v, due := j.due()
		if v != nil && !due.After(time.Now()) {
			j.look(ctx, v)
			_, due = j.due()
		}
		if err := j.hub.wait(ctx, j.wake, due); err != nil {
			return
		}
	}
}

// due says when to look into the history. Without a volume there is nothing to look for.
func (j *journal) due() (v *volume, due time.Time) {
	live := j.hub.Live()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.volume == nil {
		return nil, due
	}
	return j.volume, j.volume.due(live, j.hub.poll)
}

// look enters what the history has since the mark. With the first look of a volume its window begins.
func (j *journal) look(ctx context.Context, v *volume) {
	began := time.Now()
	at, recent, err := j.recent(ctx, j.mark(v))
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err == nil:
		v.take(recent, at, began)
	case ctx.Err() != nil: // and so run ends
	case v.window == nil, errors.Is(err, leadership.HistoryCompacted):
		v.fail(err)
		j.drop(v)
	default:
		v.stale, v.pause = true, time.Now().Add(j.hub.poll)
	}
	j.mu.wake(&v.news)
}

// mark returns the instant to look from; zero if the volume has no window yet.
func (j *journal) mark(v *volume) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	v.stale = false
	if v.window == nil {
		return time.Time{}
	}
	return v.window.mark
}

// recent reads what was committed after the mark. Without a mark it chooses one, and reads some of what was before it, so that nothing is
// missing between events whose times are not in the order of their revisions.
func (j *journal) recent(ctx context.Context, mark time.Time) (time.Time, leadership.Recent, error) {
	if !mark.IsZero() {
		recent, err := j.since(ctx, mark)
		return mark, recent, err
	}
	err := j.hub.askHistory(ctx, func(ctx context.Context) error {
		now, err := j.hub.store.Now(ctx)
		mark = now.Add(-overlap)
		return err
	})
	if err != nil {
		return mark, leadership.Recent{}, err
	}
	recent, err := j.since(ctx, mark.Add(-overlap))
	return mark, recent, err
}

// from returns the instant to which the volume's window reaches back.
func (j *journal) from(v *volume) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	if v.window == nil {
		return time.Time{}
	}
	return v.window.from
}

// since reads what was committed after the instant in all elections.
func (j *journal) since(ctx context.Context, at time.Time) (recent leadership.Recent, err error) {
	err = j.hub.askHistory(ctx, func(ctx context.Context) error {
		recent, err = j.hub.store.Since(ctx, at)
		return err
	})
	return recent, err
}
