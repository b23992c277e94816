package belief

// visited is the states that were come to, in the order in which they were.
type visited struct {
	all   []visit
	known map[packed]struct{}
}

// visit is a state, and the number of one that is a step before it.
type visit struct {
	state packed
	from  uint32
}

// add remembers the new ones among the states that are a step from that of the number.
func (v *visited) add(ways []packed, from uint32) {
	for _, to := range ways {
		if _, ok := v.known[to]; !ok {
			v.known[to] = struct{}{}
			v.all = append(v.all, visit{to, from})
		}
	}
}
