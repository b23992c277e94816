package hub

import (
	"context"
	"errors"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/view"
)

const (
	maxTasks    = 16 // that Run carries out concurrently
	taskTimeout = 10 * time.Second
	minNap      = 10 * time.Millisecond // times that are closer together share a wake-up
	maxNap      = time.Minute           // because a timer stands still while the machine is suspended
)

// Run does what the view asks for, and keeps the journal of the feeds, until ctx ends; then it
// waits for the calls in progress. Call it once. Without it expiries are not recorded, the history
// is not read for missed events unless a watch begins, and feeds get no events.
func (h *Hub) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { h.feeds.run(ctx) })
	free := make(chan struct{}, maxTasks)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		t, err := h.nextTask(ctx)
		if err != nil {
			return
		}
		all.Go(func() {
			defer func() { <-free }()
			h.carryOutTask(ctx, t)
		})
	}
}

// nextTask waits for something to do.
func (h *Hub) nextTask(ctx context.Context) (view.Task, error) {
	for {
		t, nap, ok := h.due()
		if ok {
			return t, nil
		}
		select {
		case <-h.sooner:
		case <-time.After(nap):
		case <-ctx.Done():
			return t, ctx.Err()
		}
	}
}

func (h *Hub) due() (t view.Task, nap time.Duration, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	t, at, ok := h.view.Next(now)
	return t, min(max(at-now, minNap), maxNap), ok
}

func (h *Hub) carryOutTask(ctx context.Context, t view.Task) {
	switch t.Reason {
	case view.End, view.Watcher:
		h.expire(ctx, t)
	default:
		h.mu.Lock()
		var l *look
		if want, ok := h.view.Look(t); ok {
			l = h.look(t.Election, want)
		}
		h.mu.Unlock()
		if l != nil {
			l.wait(ctx, h)
		}
	}
}

// expire records the end of a lease, if the lease has ended.
func (h *Hub) expire(ctx context.Context, t view.Task) {
	ctx, cancel := context.WithTimeout(ctx, taskTimeout)
	defer cancel()
	asked := h.now()
	l, err := h.store.Expire(ctx, t.Election)
	var gaveUp bool
	h.View(func(v *view.View, now time.Duration) {
		var news bool
		if news, gaveUp = v.Expired(t, l, err, asked, now); news {
			wakeLines(v.Find(t.Election))
		}
	})
	if gaveUp {
		h.log.Warn("gave up recording that a lease has ended; the maintenance tick finds it", "election", t.Election, "cause", err)
	}
}

// lookKey identifies a look into the history.
type lookKey struct {
	election leadership.Election
	view.Look
}

// look is one read of an election's history, shared by all callers that want the same at the same
// time.
type look struct {
	done chan struct{} // closed once the following fields are set

	events  []leadership.Event
	err     error
	failure int // the number of err
}

// failed returns the number of the failure if told is its error, and 0 otherwise.
func (l *look) failed(told error) int {
	if told == nil {
		return 0
	}
	select {
	case <-l.done:
		return l.failure
	default:
		return 0
	}
}

// look returns the look in progress, or begins one. Call with the mutex held.
func (h *Hub) look(e leadership.Election, want view.Look) *look {
	key := lookKey{e, want}
	l, ok := h.looks[key]
	if !ok {
		l = &look{done: make(chan struct{})}
		h.looks[key] = l
		h.running.Go(func() { l.carryOut(h, key) })
	}
	return l
}

// carryOut reads the history, and passes on the events.
func (l *look) carryOut(h *Hub, key lookKey) {
	began := h.now()
	err := h.askHistory(h.life, func(ctx context.Context) (err error) {
		l.events, err = h.store.Events(ctx, leadership.EventsRequest{Election: key.election, After: key.After, Limit: leadership.MaxPageSize})
		return err
	})
	if errors.Is(err, leadership.NotFound) { // it does not exist yet
		err = nil
	}
	l.err = err
	h.mu.Lock()
	defer h.unlock()
	delete(h.looks, key)
	if h.view.Looked(key.election, key.Look, l.events, len(l.events) == leadership.MaxPageSize, err, began, h.now()) {
		h.wake(key.election)
	}
	l.failure = h.view.Failure(key.election).Number
	close(l.done)
}

// wait returns the result of the look. If that is neither events nor an error, there may still be
// events: the caller must look again. Errors are the store's, ctx's, and the hub's cause.
func (l *look) wait(ctx context.Context, h *Hub) ([]leadership.Event, error) {
	if err := h.wait(ctx, l.done, time.Time{}); err != nil {
		return nil, err
	}
	return l.events, l.err
}
