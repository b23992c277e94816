package notify

import (
	"context"
	"errors"
	"time"

	"regent/leadership"
)

// Watch gets every event of one election after a revision: once, in order and without a gap. It belongs to one goroutine.
type Watch struct {
	listener *Listener
	after    leadership.Revision
}

// Watch returns a watch on what comes after the revision, 0 for all, to be closed by its owner. The election need not exist yet.
func (h *Hub) Watch(e leadership.Election, after leadership.Revision) *Watch {
	return &Watch{listener: h.Listen(e), after: after}
}

// Close ends the watch.
func (w *Watch) Close() { w.listener.Close() }

// After is the revision that the watch has come to: that of the last event which Next returned.
func (w *Watch) After() leadership.Revision { return w.after }

// Ready returns what there is after what was returned before, maybe nothing, without waiting for more than the history. Errors are those of
// Next.
func (w *Watch) Ready(ctx context.Context) ([]leadership.Event, error) {
	events, _, err := w.ready(ctx)
	if n := len(events); n > 0 {
		w.after = events[n-1].Revision
	}
	return events, err
}

// Next waits until there are events after those that it returned before, and returns them, at least one. Errors: ctx's; the cause that the
// Hub was closed with; HistoryCompacted if what follows is no longer kept; those of the store. After an error Next may be called again,
// and nothing is lost.
func (w *Watch) Next(ctx context.Context) ([]leadership.Event, error) {
	for {
		events, in, err := w.ready(ctx)
		if err == nil && len(events) == 0 {
			err = w.wait(ctx, in)
		}
		if err != nil {
			return nil, err
		}
		if n := len(events); n > 0 {
			w.after = events[n-1].Revision
			return events, nil
		}
	}
}

// never is a time that nobody waits for.
const never time.Duration = -1

// What was heard may be in the history a moment later only, on an emulator; or never, if somebody has made it up.
const (
	settling  = 20 * time.Millisecond // before the history is read again
	maxFutile = 10                    // so many times, and then the history is believed
)

// ready returns what there is or, if there is nothing, after how long to look again though nobody was woken.
func (w *Watch) ready(ctx context.Context) (events []leadership.Event, again time.Duration, err error) {
	h := w.listener.hub
	h.mu.Lock()
	t := h.topics[w.listener.election]
	events, again = t.after(w.after), h.dueIn(t, w.after)
	behind := t.newest.Revision > w.after
	cause := h.cause
	h.mu.Unlock()
	if cause != nil || len(events) > 0 || !behind && again != 0 {
		return events, again, cause
	}
	if events, err = h.read(ctx, w.listener.election, w.after); behind {
		return events, settling, err
	}
	return events, 0, err
}

// dueIn returns after how long the history of a topic should be read for what comes after the revision, though nothing new was heard: 0 for
// at once, or never.
func (h *Hub) dueIn(t *topic, after leadership.Revision) time.Duration {
	switch {
	case !t.synced || after < t.end:
		return 0
	case h.live:
		return never
	}
	return max(h.poll-time.Since(t.looked), 0)
}

// wait waits to be woken, or for as long as again says.
func (w *Watch) wait(ctx context.Context, again time.Duration) error {
	var due <-chan time.Time
	if again != never {
		timer := time.NewTimer(again)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-w.listener.c:
	case <-due:
	case <-w.listener.hub.closed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// read is a look into the history that is under way, for all who want the same.
type read struct {
	done   chan struct{}
	events []leadership.Event
	err    error
}

// readTimeout bounds one look into the history.
const readTimeout = 10 * time.Second

// read reads what follows after the revision. Those who want the same at the same time share one look.
func (h *Hub) read(ctx context.Context, e leadership.Election, after leadership.Revision) ([]leadership.Event, error) {
	h.mu.Lock()
	t := h.topics[e]
	r, shared := t.reads[after]
	if !shared {
		r = &read{done: make(chan struct{})}
		t.reads[after] = r
		go h.look(context.WithoutCancel(ctx), e, after, t, h.epoch)
	}
	h.mu.Unlock()
	select {
	case <-r.done:
		return r.events, r.err
	case <-h.closed:
		return nil, h.Cause()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// look reads a part of the history, in the given epoch, for all who wait for it.
func (h *Hub) look(ctx context.Context, e leadership.Election, after leadership.Revision, t *topic, epoch int) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	events, err := h.history.Events(ctx, leadership.EventsRequest{Election: e, After: after, Limit: leadership.MaxPageSize})
	if errors.Is(err, leadership.NotFound) {
		err = nil // it was never seen, and may come yet
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r := t.reads[after]
	delete(t.reads, after)
	r.events, r.err = events, err
	close(r.done)
	t.learn(events)
	if err == nil && len(events) < leadership.MaxPageSize && epoch == h.epoch {
		t.synced, t.end, t.looked = true, after, time.Now()
		if n := len(events); n > 0 {
			t.end = events[n-1].Revision
		}
		t.believe()
	}
}
