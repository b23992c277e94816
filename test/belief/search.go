package belief

import (
	"cmp"
	"context"
)

// Result is what a search has found.
type Result struct {
	States    int // that can be reached; candidates with like clocks are interchangeable
	Steps     int // between them
	Believing int // in how many states a candidate believes that it leads
	// Broken is a property that does not hold everywhere; "" if all do.
	Broken Property
	// Trace is a shortest way to where it does not, a line for each step.
	Trace []string
}

// search goes through a model, nearest first.
type search struct {
	model   *Model
	decided map[input]decision
	visited visited
	ways    []packed // from the state that is looked at
	broken  Property // by the steps since it was last set to ""
	granted bool     // likewise
}

// Search visits all that can be reached, or stops where a property does not hold.
func (m *Model) Search() Result {
	r, _ := m.SearchContext(context.Background())
	return r
}

// SearchContext is Search, until ctx ends; then there is no result, and the error is ctx's.
func (m *Model) SearchContext(ctx context.Context) (Result, error) {
	const between = 1 << 10 // so many states are looked at in some milliseconds
	x := m.start()
	var r Result
	at := 0
	for ; at < len(x.visited.all) && x.broken == ""; at++ {
		if at%between == 0 && ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		here := x.visited.all[at].state.unpack()
		if here.believers() > 0 {
			r.Believing++
		}
		steps, found := x.look(at, here)
		r.Steps += steps
		for _, v := range found {
			s := v.state.unpack()
			x.broken = cmp.Or(x.broken, m.broken(&s))
		}
	}
	r.States, r.Broken = len(x.visited.all), x.broken
	if r.Broken != "" {
		r.Trace = x.trace(uint32(at-1), r.Broken)
	}
	return r, nil
}

// start is at the state before the first step.
func (m *Model) start() *search {
	if m.Commits && m.Wait > 0 {
		panic("belief: the time in line is not counted while a transaction is under way")
	}
	x := &search{model: m, decided: map[input]decision{}, visited: visited{known: map[packed]struct{}{}}}
	x.visited.add([]packed{m.pack(&state{})}, 0)
	return x
}

// look takes all steps from the state of that number. It returns how many there are, and the states
// that are new.
func (x *search) look(at int, here state) (steps int, found []visit) {
	known := len(x.visited.all)
	x.ways = x.ways[:0]
	x.next(here, func(_ step, s state) { x.ways = append(x.ways, x.model.pack(&s)) })
	x.visited.add(x.ways, uint32(at))
	return len(x.ways), x.visited.all[known:]
}
