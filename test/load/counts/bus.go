package main

import (
	"context"
	"maps"
	"slices"
	"sync"

	"regent/leadership"
)

// bus carries events between instances within this process, at once.
type bus struct {
	mu   sync.Mutex // guards ears
	ears map[*func(leadership.Event)]bool
}

func newBus() *bus { return &bus{ears: map[*func(leadership.Event)]bool{}} }

// Publish implements outbox.Topic, of leadership/instance/internal.
func (b *bus) Publish(_ context.Context, events []leadership.Event) (acked int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for hear := range b.ears {
		for _, e := range events {
			(*hear)(e)
		}
	}
	return len(events), nil
}

// Run implements instance.Bus.
func (b *bus) Run(ctx context.Context, hear func(leadership.Event), live func(bool)) error {
	b.set(&hear, true)
	live(true)
	<-ctx.Done()
	b.set(&hear, false)
	return nil
}

func (b *bus) set(hear *func(leadership.Event), on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if on {
		b.ears[hear] = true
	} else {
		delete(b.ears, hear)
	}
}

// memberBus carries messages about members between instances within this process, at once.
type memberBus struct {
	mu   sync.Mutex // guards ears
	ears map[*func([]byte)]bool
}

func newMemberBus() *memberBus { return &memberBus{ears: map[*func([]byte)]bool{}} }

// Publish implements instance.MemberBus.
func (b *memberBus) Publish(_ context.Context, message []byte) error {
	b.mu.Lock()
	ears := slices.Collect(maps.Keys(b.ears))
	b.mu.Unlock()
	for _, hear := range ears { // which may send an answer
		(*hear)(message)
	}
	return nil
}

// Run implements instance.MemberBus.
func (b *memberBus) Run(ctx context.Context, hear func([]byte), live func(bool)) error {
	b.set(&hear, true)
	live(true)
	<-ctx.Done()
	b.set(&hear, false)
	return nil
}

func (b *memberBus) set(hear *func([]byte), on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if on {
		b.ears[hear] = true
	} else {
		delete(b.ears, hear)
	}
}
