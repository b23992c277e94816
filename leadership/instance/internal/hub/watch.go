package hub

import (
	"cmp"
	"context"
	"time"

	"regent/leadership"
)

// Watch gets every event of one election after a revision: once, in order and without a gap. It belongs to one goroutine.
type Watch struct {
	hub   *Hub
	topic *topic
	after leadership.Revision

	closed func()
}

// Watch returns a watch on what comes after the revision, 0 for all, to be closed by its owner. The election need not exist yet, nor have
// come to the revision.
func (h *Hub) Watch(e leadership.Election, after leadership.Revision) *Watch {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := &Watch{hub: h, topic: h.topic(e), after: after}
	w.topic.watches[w] = struct{}{}
	return w
}

// Close ends the watch. To do it twice is the same as once.
func (w *Watch) Close() {
	w.leave()
	if w.closed != nil {
		w.closed()
	}
}

func (w *Watch) leave() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	delete(w.topic.watches, w)
	w.hub.tidy(w.topic)
}

// OnClose has do called by Close. There is one for each Watch, and it is set before the Watch is used.
func (w *Watch) OnClose(do func()) { w.closed = do }

// After is the revision that the watch has come to: that of the last event which it returned.
func (w *Watch) After() leadership.Revision { return w.after }

// Ready returns what there is after what was returned before, maybe nothing, without waiting for more than the history. It is otherwise as
// Next.
func (w *Watch) Ready(ctx context.Context) ([]leadership.Event, error) {
	events, again, err := w.ready(ctx)
	return events, cmp.Or(err, again.err)
}

// Next waits until there are events after those that were returned before, and returns them, at least one. They are shared, and not to be
// changed.
//
// Errors: ctx's; the cause that the Hub was closed with; HistoryCompacted if what follows is no longer kept; those of the store. After an
// error Next may be called again, and nothing is lost; while the store is away it fails once a second.
func (w *Watch) Next(ctx context.Context) ([]leadership.Event, error) {
	for {
		events, again, err := w.ready(ctx)
		if len(events) > 0 || err != nil {
			return events, err
		}
		if err := w.hub.wait(ctx, again.news, again.due); err != nil {
			return nil, err
		}
	}
}

// ready returns what there is or, if there is nothing, when to look again.
func (w *Watch) ready(ctx context.Context) (events []leadership.Event, again recheck, err error) {
	for len(events) == 0 && err == nil {
		if err = w.hub.over(ctx); err != nil {
			break
		}
		var l *look
		if events, again, l = w.glance(); l == nil {
			break
		}
		events, err = l.share(ctx, w.hub)
		events = later(events, w.after)
	}
	if n := len(events); n > 0 {
		w.after = events[n-1].Revision
	}
	return events, again, err
}

// recheck is when to look again: when there is news, and at the latest when it is due; never, if that is zero. err is why it is not yet due,
// if it would be.
type recheck struct {
	news <-chan struct{}
	due  time.Time
	err  error
}

// glance returns what is in memory or, if that is nothing, when to look again; if that is now, also the look into the history to wait for.
func (w *Watch) glance() (events []leadership.Event, again recheck, l *look) {
	h, t := w.hub, w.topic
	h.mu.Lock()
	defer h.mu.Unlock()
	if events = t.tail.after(w.after); len(events) > 0 {
		return events, again, nil
	}
	again.news = t.news.wait()
	from, due := t.next(w.after, h.live, h.poll)
	again.due = due
	switch now := time.Now(); {
	case due.IsZero() || due.After(now):
	case t.pause.After(now):
		again.due, again.err = t.pause, t.err
	default:
		l = t.look(from)
	}
	return nil, again, l
}

// later are those of the events that come after the revision.
func later(events []leadership.Event, after leadership.Revision) []leadership.Event {
	for len(events) > 0 && events[0].Revision <= after {
		events = events[1:]
	}
	return events
}
