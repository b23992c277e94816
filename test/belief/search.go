package belief

import (
	"cmp"
)

// Result is the result of a search.
type Result struct {
	States    int // reachable states; candidates with equal clocks are interchangeable
	Steps     int // between them
	Believing int // states in which a candidate believes that it leads
	// Broken is a property that does not hold in every state; "" if all hold.
	Broken Property
	// Trace is a shortest path to a state where it does not hold, a line for each step.
	Trace []string
}

// search explores a model, breadth first.
type search struct {
	model   *Model
	decided map[input]decision
	visited visited
	ways    []packed // from the present state
	broken  Property // by the steps since it was last set to ""
	granted bool     // from the present state
}

// Search visits all reachable states, or stops where a property does not hold.
func (m *Model) Search() Result {
	x := m.start()
	var r Result
	at := 0
	for ; at < len(x.visited.all) && x.broken == ""; at++ {
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
	return r
}

// start returns a search at the state before the first step.
func (m *Model) start() *search {
	if m.Commits && m.Wait > 0 {
		panic("belief: the time in line is not counted while a transaction is under way")
	}
	x := &search{model: m, decided: map[input]decision{}, visited: visited{known: map[packed]struct{}{}}}
	x.visited.add([]packed{m.pack(&state{})}, 0)
	return x
}

// look takes all steps from the state with that number. It returns their number, and the new
// states.
func (x *search) look(at int, here state) (steps int, found []visit) {
	known := len(x.visited.all)
	x.ways = x.ways[:0]
	x.next(here, func(_ step, s state) { x.ways = append(x.ways, x.model.pack(&s)) })
	x.visited.add(x.ways, uint32(at))
	return len(x.ways), x.visited.all[known:]
}
