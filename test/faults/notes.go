package faults

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"regent/leadership"
	"regent/test/checker"
	"regent/test/faults/record"
)

// notes has everything that the processes have recorded so far. Its zero value is ready.
type notes struct {
	mu        sync.Mutex        // guards all below
	so        checker.Recording // but for what follows
	beliefs   map[beliefID]checker.Belief
	consumers map[string]*checker.Consumer
	failures  []string
}

type beliefID struct {
	who      string
	election leadership.Election
	token    leadership.Token
}

// add records a line.
func (b *notes) add(l record.Line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case l.Call != nil:
		b.so.Calls = append(b.so.Calls, *l.Call)
	case l.Belief != nil:
		b.believe(*l.Belief)
	case l.Reading != nil:
		b.so.Readings = append(b.so.Readings, *l.Reading)
	case l.Consumer != nil:
		c := b.consumer(l.Consumer.Name)
		got := c.Got
		*c = *l.Consumer
		c.Got = got
	case l.Delivery != nil:
		c := b.consumer(l.Delivery.Consumer)
		c.Got = append(c.Got, l.Delivery.Event.Leadership())
	case l.Effect != nil:
		b.so.Effects = append(b.so.Effects, *l.Effect)
	case l.Proposal != nil:
		b.so.Proposals = append(b.so.Proposals, *l.Proposal)
	case l.Failure != "":
		b.failures = append(b.failures, l.Failure)
	}
}

func (b *notes) believe(one checker.Belief) {
	if b.beliefs == nil {
		b.beliefs = map[beliefID]checker.Belief{}
	}
	id := beliefID{one.Who, one.Election, one.Token}
	if known, ok := b.beliefs[id]; ok {
		one.From, one.Until = min(one.From, known.From), max(one.Until, known.Until)
	}
	b.beliefs[id] = one
}

func (b *notes) consumer(name string) *checker.Consumer {
	if b.consumers == nil {
		b.consumers = map[string]*checker.Consumer{}
	}
	c, ok := b.consumers[name]
	if !ok {
		c = &checker.Consumer{Name: name}
		b.consumers[name] = c
	}
	return c
}

// expects reports whether it is recorded from where on the consumer must get every event.
func (b *notes) expects(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.consumers[name] != nil
}

// stopped records that a consumer gets no more events.
func (b *notes) stopped(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.consumers[name]; c != nil {
		c.Partial = true
	}
}

// note records what no line tells of.
func (b *notes) note(add func(*checker.Recording)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	add(&b.so)
}

func (b *notes) fault(f checker.Fault) {
	b.note(func(r *checker.Recording) { r.Faults = append(r.Faults, f) })
}

func (b *notes) fail(format string, args ...any) {
	b.add(record.Line{Failure: fmt.Sprintf(format, args...)})
}

func (b *notes) want(all []checker.Willing) {
	b.note(func(r *checker.Recording) { r.Willing = append(r.Willing, all...) })
}

// recording returns everything, with the store's history.
func (b *notes) recording(history []leadership.Event) checker.Recording {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.so // whose slices may grow, while what is in them stays
	r.History, r.Calls = history, slices.Clone(r.Calls)
	for _, name := range slices.Sorted(maps.Keys(b.consumers)) {
		r.Consumers = append(r.Consumers, *b.consumers[name])
	}
	for _, one := range b.beliefs {
		r.Beliefs = append(r.Beliefs, one)
	}
	slices.SortFunc(r.Calls, func(x, y checker.Call) int { return int(x.Asked - y.Asked) })
	slices.SortFunc(r.Beliefs, func(x, y checker.Belief) int { return int(x.From - y.From) })
	return r
}
