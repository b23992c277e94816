package httpfence

import (
	"cmp"
	"context"
	"sync"

	"regent/leadership/fence"
)

// Marks keeps the highest token of each resource: in the service's own database, say, by one of the packages beside this one.
//
// What it promises is about the order in which requests are let in, and no more: once Raise has returned nil for a token, no lower one is let in,
// by any process that shares the Marks. The handler runs afterwards. A request that was let in before, and writes later, is not stopped by
// it; see the package.
type Marks interface {
	// Raise makes w the mark of the resource, as Mark.Admit has it, in one step: it compares and raises, or it returns Admit's error and leaves
	// the mark as it is. Any other error means that it is not known whether the mark was raised. It blocks until that is known or ctx ends.
	Raise(ctx context.Context, resource string, w fence.Mark) error
}

// DefaultResources is how many resources a Memory keeps the marks of.
const DefaultResources = 10_000

// Memory is Marks for what lives and dies with the process. The zero Memory is ready; all methods may be called at the same time.
//
// A mark is never forgotten, for whoever has forgotten one lets a former leader in. So when there is no room for one more resource, its requests
// are refused with StoreUnavailable; the others go on.
type Memory struct {
	// Resources is how many there may be; 0 for DefaultResources. It must not be changed once the Memory is in use.
	Resources int

	mu    sync.Mutex
	marks map[string]fence.Mark // by resource; guarded by mu
}

// Raise raises the mark. It does not block.
func (s *Memory) Raise(_ context.Context, resource string, w fence.Mark) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.marks[resource]
	m, err := before.Admit(w)
	if err != nil {
		return err
	}
	if limit := cmp.Or(s.Resources, DefaultResources); !known && len(s.marks) >= limit {
		return unknown("the marks of %d resources are kept, and there is no room for another", limit)
	}
	if s.marks == nil {
		s.marks = map[string]fence.Mark{}
	}
	s.marks[resource] = m
	return nil
}

// Mark is what is remembered of the resource.
func (s *Memory) Mark(resource string) fence.Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marks[resource]
}
