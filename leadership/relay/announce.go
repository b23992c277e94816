package relay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"regent/leadership"
	"regent/leadership/failpoint"
)

// keepAnnouncing announces what Publish is told of until the queue is closed and empty, or ctx ends.
func (r *Relay) keepAnnouncing(ctx context.Context) {
	var serving sync.WaitGroup
	defer serving.Wait()
	slots := make(chan struct{}, parallel)
	for {
		slots <- struct{}{}
		told := r.queue.next(ctx)
		if len(told) == 0 {
			return
		}
		serving.Go(func() {
			r.announce(ctx, told)
			r.queue.done(told[0].Election)
			<-slots
		})
	}
}

// announce publishes events of one election that were committed here. After a failure it leaves to the relay what is left.
func (r *Relay) announce(ctx context.Context, told []leadership.Event) {
	e := told[0].Election
	give, err := r.turns.take(ctx, e)
	if err != nil {
		return
	}
	defer give()
	if r.pause.on(r.clock()) {
		return
	}
	events, err := r.due(ctx, told)
	if err != nil {
		r.leave("the outbox cannot be read", "election", e, "cause", err)
		return
	}
	acked, err := r.send(ctx, events)
	if acked > 0 {
		failpoint.Hit("relay:published")
		r.marks.add(events[:acked])
	}
	if err != nil {
		r.pause.begin(r.clock())
		r.leave("the topic has failed", "election", e, "cause", err)
	}
}

// due returns, in order, what is to be sent so that what was told is announced and overtakes nothing: just that, if it follows on what is known
// to be out; else all that the election's outbox has.
func (r *Relay) due(ctx context.Context, told []leadership.Event) ([]leadership.Event, error) {
	e := told[0].Election
	slices.SortFunc(told, func(a, b leadership.Event) int { return cmp.Compare(a.Revision, b.Revision) })
	out := r.known.of(e).out
	if news := after(told, out); follow(news, out) {
		return news, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	events, err := r.store.Unannounced(ctx, e, pageSize)
	return after(events, r.known.of(e).out), err
}

// send publishes events of one election, which must be due and whose turn the caller has. It says how many at the front are out; unless it is
// all, err says why.
func (r *Relay) send(ctx context.Context, events []leadership.Event) (acked int, err error) {
	for batch := range slices.Chunk(events, maxPublish) {
		n, err := r.sendBatch(ctx, batch)
		acked += n
		if err != nil {
			return acked, err
		}
		if acked < len(events) {
			failpoint.Hit("relay:mid-batch")
		}
	}
	return acked, nil
}

func (r *Relay) sendBatch(ctx context.Context, batch []leadership.Event) (acked int, err error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	acked, err = r.topic.Publish(ctx, batch)
	if acked > 0 {
		r.known.acked(batch[acked-1].ID())
	}
	if err == nil && acked < len(batch) {
		err = fmt.Errorf("relay: the topic acknowledged %d of %d events", acked, len(batch))
	}
	if err == nil {
		r.pause.end()
	}
	return acked, err
}
