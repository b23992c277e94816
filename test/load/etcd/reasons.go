package main

// why says why a goal is missed, and what it would take. It is written by hand, and printed only
// while the goal is missed.
type why struct {
	goal   string
	size   int // 0 for every size without a line of its own
	reason string
}

// whys are about goals as they were missed in the committed report.
func whys() []why {
	return []why{}
}

// reason is "" if none is written down.
func reason(goal string, size int) (found string) {
	for _, w := range whys() {
		switch {
		case w.goal != goal:
		case w.size == size:
			return w.reason
		case w.size == 0:
			found = w.reason
		}
	}
	return found
}
