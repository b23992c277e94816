package belief

import "slices"

// explore visits all states that can be reached, nearest first, or stops where a property does not
// hold. States are one if their keys are equal. next calls visit with every step that can happen,
// and the property that it breaks, if it does.
func explore[S any, K comparable](begin S, key func(S) K, next func(from S, visit func(to S, how string, broken Property))) (all []S, r Result) {
	type way struct {
		from int
		how  string
	}
	all = []S{begin}
	ways := []way{{}}
	known := map[K]bool{key(begin): true}
	for at := 0; at < len(all) && r.Broken == ""; at++ {
		next(all[at], func(to S, how string, broken Property) {
			r.Steps++
			k := key(to)
			if r.Broken != "" || known[k] && broken == "" {
				return
			}
			known[k], r.Broken = true, broken
			all, ways = append(all, to), append(ways, way{at, how})
		})
	}
	if r.Broken != "" {
		for n := len(all) - 1; n > 0; n = ways[n].from {
			r.Trace = append(r.Trace, ways[n].how)
		}
		slices.Reverse(r.Trace)
	}
	r.States = len(all)
	return all, r
}
