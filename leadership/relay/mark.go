package relay

import (
	"context"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/failpoint"
)

// Limits of marking.
const (
	markDelay  = 100 * time.Millisecond // for more to come, so that they are marked together
	markTries  = 5
	maxPending = 10_000 // events that may wait to be marked; those beyond it are announced once more, by the relay
)

// marks are events that were acknowledged to the announcer and are to be marked.
type marks struct {
	wake   chan struct{} // of one: there may be something to take
	closed chan struct{} // once nothing more will be added

	mu  sync.Mutex // guards ids
	ids []leadership.EventID
}

func (m *marks) add(events []leadership.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range events {
		if len(m.ids) < maxPending {
			m.ids = append(m.ids, e.ID())
		}
	}
	signal(m.wake)
}

// next waits for something to mark, and takes as much as can be marked at once. It returns nothing once that was all, or when ctx has ended.
func (m *marks) next(ctx context.Context) []leadership.EventID {
	for {
		over := m.gather(ctx)
		if ids := m.take(); len(ids) > 0 || over {
			return ids
		}
	}
}

// gather waits until there may be something to mark, and then a little for more. over says that nothing more will come.
func (m *marks) gather(ctx context.Context) (over bool) {
	var late <-chan time.Time // nil until there is something
	for m.count() < leadership.MaxBatch {
		select {
		case <-m.wake:
			if late == nil {
				late = time.After(markDelay)
			}
		case <-late:
			return false
		case <-m.closed:
			return true
		case <-ctx.Done():
			return true
		}
	}
	return false
}

func (m *marks) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.ids)
}

func (m *marks) take() []leadership.EventID {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := min(len(m.ids), leadership.MaxBatch)
	ids := m.ids[:n:n]
	if m.ids = m.ids[n:]; len(m.ids) > 0 {
		signal(m.wake)
	}
	return ids
}

// keepMarking marks what the announcer has announced, until nothing more will come and all is marked, or ctx ends.
func (r *Relay) keepMarking(ctx context.Context) {
	for {
		ids := r.marks.next(ctx)
		if len(ids) == 0 {
			return
		}
		if err := r.mark(ctx, ids); err != nil {
			r.leave("what was announced cannot be marked, and is announced once more", "events", len(ids), "cause", err)
			continue
		}
		failpoint.Hit("relay:marked")
	}
}

// mark marks up to leadership.MaxBatch events, all of which are out. It tries a few times.
func (r *Relay) mark(ctx context.Context, ids []leadership.EventID) (err error) {
	var delay backoff
	for try := range markTries {
		if try > 0 && sleep(ctx, delay.next()) != nil {
			return err
		}
		if err = r.markOnce(ctx, ids); err == nil {
			return nil
		}
	}
	return err
}

func (r *Relay) markOnce(ctx context.Context, ids []leadership.EventID) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return r.store.MarkAnnounced(ctx, ids)
}
