package belief

import (
	"cmp"
	"slices"
)

// Result is what a search has found.
type Result struct {
	States    int // that can be reached; those that differ by who is who count as one where all clocks are alike
	Steps     int // between them
	Depth     int // how many steps the farthest state is away
	Believing int // in how many states somebody believes that it leads
	// Broken is a property that does not hold everywhere; "" if all do.
	Broken Property
	// Trace is a shortest way to where it does not, a line for each step.
	Trace []string
}

// search goes through a model, nearest first.
type search struct {
	model   *Model
	decided map[input]decision
	broken  Property

	alike  bool           // the candidates' clocks
	known  map[state]bool // by its looks
	states []visited
}

// visited is a state and how it was first come to.
type visited struct {
	state state
	from  int32
	step  step
	depth int32
}

// Search visits all that can be reached, or stops where a property does not hold.
func (m *Model) Search() Result {
	x := &search{model: m, decided: map[input]decision{}, known: map[state]bool{}, alike: len(slices.Compact(slices.Clone(m.Clocks))) == 1}
	var r Result
	x.reach(visited{from: -1})
	for at := 0; at < len(x.states) && r.Broken == ""; at++ {
		here := x.states[at]
		r.Depth = int(here.depth)
		if here.state.believers() > 0 {
			r.Believing++
		}
		x.next(here.state, func(st step, s state) {
			r.Steps++
			to := x.reach(visited{state: s, from: int32(at), step: st, depth: here.depth + 1})
			if x.broken != "" && r.Broken == "" {
				r.Broken, r.Trace = x.broken, x.trace(int32(at), st, to)
			}
		})
	}
	r.States = len(x.states)
	return r
}

// reach remembers the state and looks at it, unless it is known.
func (x *search) reach(v visited) state {
	looks := x.looks(v.state)
	if !x.known[looks] {
		x.known[looks] = true
		x.states = append(x.states, v)
		x.broken = cmp.Or(x.broken, x.model.broken(&v.state))
	}
	return v.state
}

// looks is the state in an order of the candidates that does not depend on who is who, where that makes no difference.
func (x *search) looks(s state) state {
	if !x.alike {
		return s
	}
	for last := len(x.model.Clocks) - 1; last > 0; last-- {
		for i := range last {
			if s.rank(i) > s.rank(i+1) {
				s.swap(i, i+1)
			}
		}
	}
	return s
}

// rank is a number that two candidates share only if they are in the same situation.
func (s *state) rank(i int) (rank uint64) {
	c := s.candidates[i]
	for _, part := range []uint8{uint8(c.phase), c.until, uint8(c.call), uint8(c.place), c.age, c.waited, c.left} {
		rank = rank<<8 | uint64(part)
	}
	for _, is := range []bool{c.behind, c.asked, c.askedFormerly, s.leader == int8(i+1)} {
		rank <<= 1
		if is {
			rank |= 1
		}
	}
	return rank
}

// swap makes each candidate the other.
func (s *state) swap(i, j int) {
	s.candidates[i], s.candidates[j] = s.candidates[j], s.candidates[i]
	switch s.leader {
	case int8(i + 1):
		s.leader = int8(j + 1)
	case int8(j + 1):
		s.leader = int8(i + 1)
	}
}
