package hub

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"regent/leadership"
)

// look is one read of an election's history, for all who want the same at the same time. The first of them carries it out.
type look struct {
	topic *topic
	after leadership.Revision
	taken atomic.Bool
	done  chan struct{} // closed once what follows is set; neither is, if whoever carried it out has gone

	events []leadership.Event
	err    error
}

// look returns the look that is under way, or a new one.
func (t *topic) look(after leadership.Revision) *look {
	l, ok := t.looks[after]
	if !ok {
		l = &look{topic: t, after: after, done: make(chan struct{})}
		t.looks[after] = l
	}
	return l
}

// share returns what the look finds. If it finds neither events nor an error, there may be something all the same: look again. Errors are the
// store's, ctx's, and the hub's cause.
func (l *look) share(ctx context.Context, h *Hub) ([]leadership.Event, error) {
	if !l.taken.Swap(true) {
		l.carryOut(ctx, h)
	}
	if err := h.wait(ctx, l.done, time.Time{}); err != nil {
		return nil, err
	}
	return l.events, l.err
}

// retry is how long an election is not looked for after the store has failed, however many want it.
const retry = time.Second

// carryOut reads the history. If whoever asks goes meanwhile, nothing is found, and another of those who want it has to look.
func (l *look) carryOut(ctx context.Context, h *Hub) {
	began, all := time.Now(), false
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		l.end(h, began, all)
	}()
	err := h.ask(ctx, func(ctx context.Context) (err error) {
		l.events, err = h.history.Events(ctx, leadership.EventsRequest{Election: l.topic.election, After: l.after, Limit: leadership.MaxPageSize})
		return err
	})
	switch {
	case err == nil, errors.Is(err, leadership.NotFound): // it was never seen, and may come yet
		all = len(l.events) < leadership.MaxPageSize
	case h.over(ctx) == nil:
		l.err = err
	}
}

// end passes on what was found; all says that there was no more. The hub's mutex is held.
func (l *look) end(h *Hub, began time.Time, all bool) {
	t := l.topic
	current := t.looks[l.after] == l
	if current {
		delete(t.looks, l.after)
	}
	if l.err != nil && !errors.Is(l.err, leadership.HistoryCompacted) {
		t.pause, t.err = time.Now().Add(retry), l.err
	}
	if t.learn(l.after, l.events, all && current, began) {
		h.wake(t)
	}
	close(l.done)
}
