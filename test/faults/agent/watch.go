package main

import (
	"context"
	"maps"
	"slices"

	"regent/leadership"
	"regent/leadership/client"
	"regent/test/checker"
	"regent/test/faults/record"
)

// watch reads the stream until ctx ends. It is a consumer once it has been told the present state.
func (p *agent) watch(ctx context.Context) {
	w := &watcher{agent: p, consumer: checker.Consumer{Name: p.name, Elections: record.WithSeats(p.Elections, p.Seats), After: map[leadership.Election]leadership.Revision{}}}
	if p.Election != "" {
		w.consumer.Elections = []leadership.Election{p.Election}
	}
	for news, err := range p.server().Watch(ctx, client.WatchRequest{Election: p.Election}) {
		if err != nil {
			if ctx.Err() == nil {
				p.recorder.Fail("%s watches no more: %v", p.name, err)
			}
			return
		}
		w.hear(news)
	}
}

// watcher is a consumer.
type watcher struct {
	*agent
	consumer checker.Consumer
	expected bool
	heard    int
}

func (w *watcher) hear(n client.News) {
	switch {
	case n.Lease != nil && !slices.Contains(w.consumer.Elections, n.Lease.Election), n.Event != nil && !slices.Contains(w.consumer.Elections, n.Event.Election):
		// of Regent's own
	case n.Lease != nil && w.expected:
		w.recorder.Fail("%s is told once more how %s is, as if its watch had begun anew", w.name, n.Lease.Election)
	case n.Lease != nil:
		w.consumer.After[n.Lease.Election] = n.Lease.Revision
		if w.Election != "" {
			w.expect()
		}
	case n.Ready:
		for _, e := range w.consumer.Elections {
			if _, told := w.consumer.After[e]; !told && !w.expected {
				w.consumer.Deleted = append(w.consumer.Deleted, e)
			}
		}
		w.expect()
	case n.Event != nil:
		w.expect()
		if w.heard++; !w.Deaf || w.heard%10 != 0 {
			w.recorder.Deliver(w.name, *n.Event)
		}
	}
}

// expect records from where on this consumer must get every event.
func (w *watcher) expect() {
	if !w.expected {
		w.expected = true
		c := w.consumer
		c.After = maps.Clone(c.After)
		w.recorder.Expect(c)
	}
}
