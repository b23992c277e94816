package crash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// plan is one image that is made from a log.
type plan struct {
	At     int     // so many entries of the log have reached the disk
	Seen   int     // so many were printed before the next reached the disk
	Cut    *cut    // nil: the process was killed
	Damage *damage // nil: the disk is sound
}

// kills returns the plans of a kill after each entry that touches files.
func kills(log []entry) (plans []plan) {
	for i, e := range log {
		if e.touches() {
			plans = append(plans, plan{At: i + 1, Seen: i + 1})
		} else if len(plans) > 0 {
			plans[len(plans)-1].Seen = i + 1
		}
	}
	return plans
}

// crashes plans n images, all of them crashes, in the order of their moments: all prefixes of the
// log, if they are no more than half, and power cuts.
func crashes(log []entry, seed uint64, n int) []plan {
	random := rand.New(rand.NewPCG(seed, 2))
	killed := kills(log)
	var cuts []plan
	situations := make(map[string][]plan)
	d := newDiskModel()
	for _, p := range killed {
		d.advance(log, p.At)
		for _, c := range d.cuts(random) {
			cuts = append(cuts, plan{At: p.At, Seen: p.Seen, Cut: &c})
			s := d.situation(c)
			situations[s] = append(situations[s], cuts[len(cuts)-1])
		}
	}
	killed = some(random, killed, max(n/2, n-len(cuts)))
	rest := n - len(killed)
	rare := varied(random, situations, rest*2/3)
	return ordered(slices.Concat(killed, rare, some(random, cuts, rest-len(rare))))
}

// varied chooses n of the plans, about as many of each situation: some happen in every commit,
// others once in a checkpoint or when a log grows.
func varied(random *rand.Rand, plans map[string][]plan, n int) (chosen []plan) {
	situations := slices.Sorted(maps.Keys(plans))
	for _, s := range situations {
		plans[s] = some(random, plans[s], n)
	}
	for i := 0; len(chosen) < n; i++ {
		before := len(chosen)
		random.Shuffle(len(situations), func(i, j int) { situations[i], situations[j] = situations[j], situations[i] })
		for _, s := range situations {
			if i < len(plans[s]) && len(chosen) < n {
				chosen = append(chosen, plans[s][i])
			}
		}
		if len(chosen) == before {
			break
		}
	}
	return chosen
}

// damages plans n images of a disk that has lost nothing and is damaged, half of them after the
// store was closed. It goes through the kinds of damage.
func damages(log []entry, seed uint64, n int) (plans []plan) {
	random := rand.New(rand.NewPCG(seed, 3))
	quiet := slices.DeleteFunc(kills(log), func(p plan) bool { return log[p.At-1].Kind != synced || p.At < len(log)/4 })
	closed := closings(log)
	for i := range n {
		p := quiet[random.IntN(len(quiet))]
		ended := len(closed) > 0 && i/len(sorts)%2 == 0
		if ended {
			p = closed[random.IntN(len(closed))]
		}
		p.Damage = &damage{Sort: sorts[i%len(sorts)], File: random.Uint64(), Random: random.Uint64(), Closed: ended}
		plans = append(plans, p)
	}
	return ordered(plans)
}

// closings returns the moments after the store was closed.
func closings(log []entry) (plans []plan) {
	for i, e := range log {
		if e.Kind != said {
			continue
		}
		if l, err := decode(e.Data); err == nil && l.Closed {
			plans = append(plans, plan{At: i + 1, Seen: i + 1})
		}
	}
	return plans
}

// some chooses up to n of the plans.
func some(random *rand.Rand, plans []plan, n int) []plan {
	random.Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
	return plans[:min(max(n, 0), len(plans))]
}

func ordered(plans []plan) []plan {
	slices.SortStableFunc(plans, func(a, b plan) int { return a.At - b.At })
	return plans
}

func (p plan) kind() string {
	switch {
	case p.Damage != nil:
		return p.Damage.Sort
	case p.Cut == nil:
		return "killed"
	case p.Cut.torn():
		return "torn"
	}
	return "cut"
}

func (p plan) String() string {
	text := fmt.Sprintf("%s after entry %d of the log", p.kind(), p.At)
	if p.Cut != nil {
		text += ", " + p.Cut.String()
	}
	if p.Damage != nil {
		text += ", " + p.Damage.String()
	}
	return text
}
