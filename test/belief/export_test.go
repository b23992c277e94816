package belief

// Orbits visits all that can be reached in a model where all clocks differ, and says
// how many states there are, and how many if those are one that are packed alike in the other
// model.
func Orbits(each, one *Model) (states, orbits int) {
	x := each.start()
	alike := map[packed]bool{}
	for at := 0; at < len(x.visited.all); at++ {
		here := x.visited.all[at].state.unpack()
		alike[one.pack(&here)] = true
		x.look(at, here)
	}
	return len(x.visited.all), len(alike)
}
