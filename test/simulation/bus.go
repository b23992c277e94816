package simulation

import (
	"context"
	"time"

	"regent/leadership"
)

// publisher is told of what an instance has committed.
type publisher struct{ *instance }

// Publish implements service.Publisher: the instance itself hears at once, the others over the
// topic, if it gets there.
func (p publisher) Publish(events ...leadership.Event) {
	for _, e := range events {
		p.hear(e)
	}
	s := p.s
	if s.w.chance(s.plan.faults.unpublished) {
		return
	}
	alive := p.alive()
	s.w.after(s.w.upTo(20*time.Millisecond), func() {
		if !alive() {
			return
		}
		for _, e := range events {
			s.bus.publish(e)
		}
	})
}

// bus is the topic, and the relay, which stands for the sweeps that publish events left behind. The
// topic gets every event at least once.
type bus struct {
	s         *simulation
	published map[leadership.Election]leadership.Revision // the first of each was in order up to this one
	early     int                                         // publications after a gap, which a topic with ordering keys holds back
}

// publish puts an event on the topic. The ordering key keeps the events of an election in order: an
// early one waits for the sweep.
func (b *bus) publish(e leadership.Event) {
	b.s.truth.heard(e, b.s.data.row(e.Election).events)
	switch next := b.published[e.Election] + 1; {
	case e.Revision > next:
		b.early++
		return
	case e.Revision == next:
		b.published[e.Election] = e.Revision
	}
	for _, i := range b.s.instances {
		b.deliver(i, e)
	}
}

func (b *bus) deliver(i *instance, e leadership.Event) {
	alive, w := i.alive(), b.s.w
	times := 1
	if w.chance(b.s.plan.faults.doubled) {
		times = 2
	}
	for range times {
		w.after(b.s.delay(), func() {
			if alive() && i.view.Live() {
				i.does(func() { i.hear(e) })
			}
		})
	}
}

// relay publishes events that were left behind and marks them, unless it dies in between, and
// starts over.
func (b *bus) relay() {
	s := b.s
	pause := s.w.between(time.Second, 5*time.Second)
	store := &handle{data: s.data, seen: map[leadership.Election]int{}}
	for _, name := range s.stored() {
		left, _ := store.Unannounced(context.Background(), name, 100)
		for n, e := range left {
			if s.w.chance(s.plan.faults.relayed / 2) {
				s.figures.Faults++
				s.w.after(pause+s.w.upTo(10*time.Second), b.relay)
				return
			}
			b.publish(e)
			if s.w.chance(s.plan.faults.relayed / 2) { // it dies before it has marked what it has published
				s.figures.Faults++
				s.w.after(pause+s.w.upTo(10*time.Second), b.relay)
				return
			}
			store.MarkAnnounced(context.Background(), []leadership.EventID{left[n].ID()})
		}
	}
	s.w.after(pause, b.relay)
}
