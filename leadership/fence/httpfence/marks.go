package httpfence

import (
	"cmp"
	"context"
	"sync"

	"regent/leadership/fence"
)

// Marks keeps the highest token of each resource, for example in the service's own database by one
// of the packages beside this one.
//
// It promises only the order in which requests are admitted: once Raise has returned nil for a
// token, no lower one is admitted by any process that shares the Marks. The handler runs
// afterwards. It does not stop a request that was admitted before and writes later; see the
// package.
type Marks interface {
	// Raise makes w the mark of the resource, as Mark.Admit does, in one step: it compares and
	// raises, or it returns Admit's error and leaves the mark as it is. After any other error it is
	// not known whether the mark was raised. It blocks until that is known or ctx ends.
	Raise(ctx context.Context, resource string, w fence.Mark) error
}

// DefaultResources is the default of Memory.Resources.
const DefaultResources = 10_000

// Memory is Marks for resources that end with the process. The zero Memory is ready to use; its
// methods may be called concurrently.
//
// A mark is never evicted, because that would admit a former leader. When the memory is full,
// requests for further resources are refused with StoreUnavailable; the others continue.
type Memory struct {
	// Resources is the maximum number of resources; 0 for DefaultResources. It must not be changed
	// while the Memory is in use.
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
		return unknown("the marks of %d resources are kept, which is the limit", limit)
	}
	if s.marks == nil {
		s.marks = map[string]fence.Mark{}
	}
	s.marks[resource] = m
	return nil
}

// Mark returns the resource's mark.
func (s *Memory) Mark(resource string) fence.Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marks[resource]
}
