package checker

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// order gives the steps to the library. First it removes from their intervals what the store's time
// rules out: a step is done after each that has an earlier time, so not before all of those were
// asked for; and before each that has a later time, so not after the first of those was answered.
// The library tries first what was asked for first. So it tries the steps in the order of the
// store's time, and seldom has to go back.
//
// It is an error if there is no order: the store's time contradicts the recording's clock.
func (p *search) order() ([]porcupine.Operation, error) {
	slices.SortStableFunc(p.steps, func(a, b step) int { return a.at.Compare(b.at) })
	steps := slices.Clone(p.steps)
	told := steps[len(steps)-p.told():]
	p.narrowStarts(told)
	p.narrowEnds(told)
	for i, s := range told {
		if s.span.from > s.span.until {
			return nil, fmt.Errorf("%v: by the store's time it comes after what was asked for later than it was answered, or before what was answered earlier than it was asked for", told[i])
		}
	}
	return p.operations(steps), nil
}

// told is how many steps have a time.
func (p *search) told() (n int) {
	for _, s := range p.steps {
		if !s.at.IsZero() {
			n++
		}
	}
	return n
}

func (p *search) narrowStarts(told []step) {
	asked, before := time.Duration(math.MinInt64), 0
	for i := range told {
		for ; told[before].at.Before(told[i].at.Add(-p.back)); before++ {
			asked = max(asked, told[before].span.from)
		}
		told[i].span.from, told[i].after = max(told[i].span.from, asked), before
	}
}

func (p *search) narrowEnds(told []step) {
	answered, behind := p.end, len(told)-1
	for i := len(told) - 1; i >= 0; i-- {
		for ; told[behind].at.After(told[i].at.Add(p.back)); behind-- {
			answered = min(answered, told[behind].span.until)
		}
		told[i].span.until = min(told[i].span.until, answered)
	}
}

// moment is the beginning or the end of a step.
type moment struct {
	at   time.Duration
	end  bool
	step int
}

// operations are the steps in the form that the library needs. Their beginnings and ends are
// numbered, so that of two that begin at the same time the one with the earlier store's time is
// tried first.
func (p *search) operations(steps []step) []porcupine.Operation {
	callers := make(map[string]int)
	ops := make([]porcupine.Operation, len(steps))
	moments := make([]moment, 0, 2*len(steps))
	for i, s := range steps {
		who := s.call.Caller
		if _, known := callers[who]; !known {
			callers[who] = len(callers)
		}
		ops[i] = porcupine.Operation{ClientId: callers[who], Input: s, Output: s}
		moments = append(moments, moment{s.span.from, false, i}, moment{s.span.until, true, i})
	}
	slices.SortStableFunc(moments, func(a, b moment) int {
		switch c := cmp.Compare(a.at, b.at); {
		case c != 0 || a.end == b.end:
			return c
		case a.end:
			return 1
		}
		return -1
	})
	for n, m := range moments {
		if m.end {
			ops[m.step].Return = int64(n)
		} else {
			ops[m.step].Call = int64(n)
		}
	}
	return ops
}
