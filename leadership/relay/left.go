package relay

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/failpoint"
)

// How the outbox is looked at.
const (
	lookSize = 100             // events in a look from outside
	pageSize = 500             // events in a look of the relay
	maxPage  = 10_000          // events in a look past those that cannot be published
	gap      = 2 * time.Second // between two looks; a live announcer has published and marked its events long before
)

// Sweep announces and marks what was left behind, and says how much; with an error, not all could be. If something is under way it looks again
// after 2 s. It is for a process that was asleep, and works whether or not Run runs. It does not lead: the lease may be that of a
// relay that is asleep as well. Who sweeps while another relays makes duplicates.
func (r *Relay) Sweep(ctx context.Context) (announced int, err error) {
	late, cancel := lingering(ctx, grace)
	defer cancel()
	for {
		left, err := r.leftBehind(ctx, pageSize)
		if err != nil || len(left) == 0 {
			return announced, err
		}
		cleared, err := r.clear(ctx, late, left)
		announced += cleared
		if err != nil {
			return announced, err
		}
	}
}

// leftBehind returns events that were left behind, of each election all that is to come first, in order. If there are none, it looks twice.
func (r *Relay) leftBehind(ctx context.Context, limit int) ([]leadership.Event, error) {
	left, waiting, err := r.look(ctx, limit)
	if err != nil || len(left) > 0 || !waiting {
		return left, err
	}
	if err := sleep(ctx, gap); err != nil {
		return nil, err
	}
	left, _, err = r.look(ctx, limit)
	return left, err
}

// look reads the outbox. waiting says that something is in it, left behind or not.
func (r *Relay) look(ctx context.Context, limit int) (left []leadership.Event, waiting bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	page, err := r.store.Unannounced(ctx, "", limit)
	switch {
	case errors.Is(err, leadership.RecordCorrupt): // and there is nothing else
		r.log.Error("relay: an event cannot be read; it is not announced, nor what follows it", "cause", err)
	case err != nil:
		return nil, false, err
	}
	return r.seen.sight(page, len(page) >= limit, r.clock()), len(page) > 0, nil
}

// sightings remembers since when events stand in the outbox, as far as the last look saw them.
type sightings struct {
	mu    sync.Mutex // guards all below
	first map[leadership.EventID]time.Duration
	full  *time.Duration // since when each look has found as much as it asked for; nil if the last did not
}

// sight returns, of what was found in the outbox, what has stood there for the gap. full says that there may be more in the outbox: if that
// lasts, all of it is left behind, though it may be another part that is seen each time.
func (s *sightings) sight(page []leadership.Event, full bool, now time.Duration) []leadership.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !full:
		s.full = nil
	case s.full == nil:
		s.full = &now
	}
	crowded := full && now-*s.full >= gap
	first := make(map[leadership.EventID]time.Duration, len(page))
	last := make(map[leadership.Election]leadership.Revision) // that was left behind
	for _, e := range page {
		at, ok := s.first[e.ID()]
		if !ok {
			at = now
		}
		first[e.ID()] = at
		if crowded || now-at >= gap {
			last[e.Election] = max(last[e.Election], e.Revision)
		}
	}
	s.first = first
	return slices.DeleteFunc(slices.Clone(page), func(e leadership.Event) bool { return e.Revision > last[e.Election] })
}

// clear announces what was left behind, and marks what is out, for which it has until late ends. It returns how much of it is marked; unless it
// is all, err says why.
func (r *Relay) clear(ctx, late context.Context, left []leadership.Event) (cleared int, err error) {
	out, err := r.republish(ctx, left)
	for batch := range slices.Chunk(out, leadership.MaxBatch) {
		if failed := r.mark(late, batch); failed != nil {
			return cleared, errors.Join(err, failed)
		}
		cleared += len(batch)
		failpoint.Hit("relay:left-marked")
	}
	return cleared, err
}

// republish publishes what was left behind, several elections at a time, and returns what is out. An election that fails holds up no other.
func (r *Relay) republish(ctx context.Context, left []leadership.Event) (out []leadership.EventID, err error) {
	lines := make(map[leadership.Election][]leadership.Event)
	for _, e := range left {
		lines[e.Election] = append(lines[e.Election], e)
	}
	var mu sync.Mutex // guards out and err
	var publishing sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for _, events := range lines {
		slots <- struct{}{}
		publishing.Go(func() {
			n, failed := r.republishLine(ctx, events)
			mu.Lock()
			defer mu.Unlock()
			for _, e := range events[:n] {
				out = append(out, e.ID())
			}
			err = cmp.Or(err, failed)
			<-slots
		})
	}
	publishing.Wait()
	return out, err
}

// republishLine publishes events of one election that were left behind. It says how many at the front are out; unless it is all, err says why.
// It leaves out what was acknowledged to this process and, for some reason, not marked; but not what was only heard, so that no
// stray message on the topic keeps an event from being announced.
func (r *Relay) republishLine(ctx context.Context, events []leadership.Event) (out int, err error) {
	e := events[0].Election
	give, err := r.turns.take(ctx, e)
	if err != nil {
		return 0, err
	}
	defer give()
	news := after(events, r.known.of(e).acked)
	acked, err := r.send(ctx, news)
	if acked > 0 {
		failpoint.Hit("relay:left-published")
	}
	return len(events) - len(news) + acked, err
}
