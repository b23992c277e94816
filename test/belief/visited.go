package belief

// visited has the visited states, in the order of their first visit.
type visited struct {
	all   []visit
	known map[packed]struct{}
}

// visit is a state, and the number of a state one step before it.
type visit struct {
	state packed
	from  uint32
}

// add stores the new ones among the states one step after the state with the number from.
func (v *visited) add(ways []packed, from uint32) {
	for _, to := range ways {
		if _, ok := v.known[to]; !ok {
			v.known[to] = struct{}{}
			v.all = append(v.all, visit{to, from})
		}
	}
}
