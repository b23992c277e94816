package outbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/failpoint"
)

// keepAnnouncing announces the events passed to Publish until the queue is closed and empty, or ctx
// ends.
func (o *Outbox) keepAnnouncing(ctx context.Context) {
	var serving sync.WaitGroup
	defer serving.Wait()
	slots := make(chan struct{}, parallel)
	for {
		slots <- struct{}{}
		told := o.queue.next(ctx)
		if len(told) == 0 {
			return
		}
		serving.Go(func() {
			defer func() { <-slots }()
			e := told[0].Election
			defer o.queue.done(e)
			if o.left.has(e) {
				return // the sweep publishes these together with earlier ones
			}
			if err := o.announce(ctx, told); err != nil {
				o.leave(e, err)
			}
		})
	}
}

// announce publishes events of one election that this process has committed: only these if they
// follow the last event known to be announced, otherwise all events of the election in the outbox.
func (o *Outbox) announce(ctx context.Context, told []leadership.Event) error {
	slices.SortFunc(told, func(a, b leadership.Event) int { return cmp.Compare(a.Revision, b.Revision) })
	out := o.known.out(told[0].Election)
	news := after(told, out)
	if !follow(news, out) {
		_, err := o.clear(ctx, ctx, told[0].Election)
		return err
	}
	acked, err := o.publish(ctx, news)
	if acked > 0 {
		failpoint.Hit("outbox:published")
		o.markSoon(news[:acked])
	}
	return err
}

// publish publishes up to maxPublish events of one election, which the caller must have claimed. It
// returns how many at the front were acknowledged, and an error unless all were.
func (o *Outbox) publish(ctx context.Context, events []leadership.Event) (acked int, err error) {
	if len(events) == 0 {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	acked, err = o.topic.Publish(ctx, events)
	if acked > 0 {
		o.known.acked(events[:acked])
	}
	if err == nil && acked < len(events) {
		err = fmt.Errorf("outbox: the topic acknowledged %d of %d events", acked, len(events))
	}
	o.reach.note(events, acked, err)
	return acked, err
}

// Limits of marking.
const (
	markDelay = 100 * time.Millisecond // to mark more events in one call
	maxMarks  = 1000                   // calls of the topic whose events wait to be marked
)

// markSoon queues announced events to be marked. If too many wait, the sweep marks them.
func (o *Outbox) markSoon(events []leadership.Event) {
	select {
	case o.marks <- ids(events):
	default:
		o.leave(events[0].Election, errFull)
	}
}

// keepMarking marks announced events until marks is closed and empty, or ctx ends.
func (o *Outbox) keepMarking(ctx context.Context) {
	for first := range o.marks {
		batch := o.gather(ctx, first)
		for part := range slices.Chunk(batch, leadership.MaxBatch) {
			if err := o.mark(ctx, part); err != nil {
				for _, id := range part {
					o.leave(id.Election, err)
				}
				continue
			}
			failpoint.Hit("outbox:marked")
		}
	}
}

// gather adds further events that come within markDelay to the batch, up to a full call.
func (o *Outbox) gather(ctx context.Context, batch []leadership.EventID) []leadership.EventID {
	due := time.After(markDelay)
	for len(batch) < leadership.MaxBatch {
		select {
		case more, ok := <-o.marks:
			if !ok {
				return batch
			}
			batch = append(batch, more...)
		case <-due:
			return batch
		case <-ctx.Done():
			return batch
		}
	}
	return batch
}

// mark marks up to leadership.MaxBatch events, all of which must have been announced.
func (o *Outbox) mark(ctx context.Context, announced []leadership.EventID) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return o.store.MarkAnnounced(ctx, announced)
}

func ids(events []leadership.Event) []leadership.EventID {
	all := make([]leadership.EventID, len(events))
	for i, e := range events {
		all[i] = e.ID()
	}
	return all
}
