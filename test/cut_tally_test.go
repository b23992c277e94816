package test

import (
	"fmt"
	"sync"
	"testing"
)

// tally counts cut calls by the outcomes that their callers saw.
type tally struct{ unknown, undone, answered, void int }

func (c tally) String() string {
	told := c.unknown + c.undone + c.answered
	return fmt.Sprintf("%d cuts: %d unknown, %d nothing done, %d answered (%d void)", told, c.unknown, c.undone, c.answered, c.void)
}

// report logs the cuts of a sweep, and adds them to the total. Each outcome must have occurred; but
// if connections are only reset, the reset may overtake a whole reply, so no call need be answered.
func (s *sweep) report(request, reply int, onlyReset bool, all *total) {
	s.t.Helper()
	s.t.Logf("request %d bytes, reply %d: %v", request, reply, s.tally)
	if s.unknown == 0 || s.undone == 0 || s.answered == 0 && !onlyReset {
		s.t.Error("an outcome did not come up")
	}
	all.add(s.tally)
}

// total is the tally of many sweeps.
type total struct {
	mu  sync.Mutex // guards sum
	sum tally
}

func newTotal(t testing.TB) *total {
	all := &total{}
	t.Cleanup(func() { t.Log(all.sum) })
	return all
}

func (a *total) add(t tally) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sum = tally{a.sum.unknown + t.unknown, a.sum.undone + t.undone, a.sum.answered + t.answered, a.sum.void + t.void}
}
