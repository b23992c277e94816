package belief

import (
	"fmt"
	"slices"
)

// trace shows how the property was broken, by a step from the visited state with that number. It
// repeats the path, because a packed state does not say which candidate is which: ann in one state
// may have another place in the next.
func (x *search) trace(last uint32, p Property) []string {
	way := []uint32{last}
	for at := last; at != 0; {
		at = x.visited.all[at].from
		way = append(way, at)
	}
	slices.Reverse(way)
	var t teller
	var s state
	for _, number := range way[1:] {
		next := x.visited.all[number].state
		s = x.tell(&t, s, func(to *state) bool { return x.model.pack(to) == next })
	}
	x.tell(&t, s, func(to *state) bool { return x.broken == p || x.model.broken(to) == p })
	return t.lines
}

// tell takes the first step that leads to the wanted state, and describes it.
func (x *search) tell(t *teller, from state, there func(*state) bool) (to state) {
	var done bool
	x.broken, x.granted = "", false
	x.next(from, func(st step, s state) {
		if !done && there(&s) {
			to, done = s, true
			t.tell(st, s, x.granted)
		}
		x.broken, x.granted = "", false
	})
	return to
}

// teller describes steps. It counts seconds and tokens, which states do not have.
type teller struct {
	lines []string
	time  int
	token int
}

func (t *teller) tell(st step, to state, granted bool) {
	if st.act == tick {
		t.time++
	}
	if granted {
		t.token++
	}
	what := st.act.String()
	if st.act != tick && st.act <= undo {
		what += " of " + string(name(st.who))
	}
	t.lines = append(t.lines, fmt.Sprintf("%d s: %s: token %d, %+v", t.time, what, t.token, to.lease))
	for i, c := range to.candidates {
		if c != (candidate{}) {
			t.lines = append(t.lines, fmt.Sprintf("\t%s: %+v", name(int8(i)), c))
		}
	}
}

// String returns the name of the constant.
func (a act) String() string {
	return [...]string{
		"tick", "expire", "begin", "ask", "abandon", "keep", "stop", "giveBack", "leave", "giveUp", "hear", "arrive", "try", "commit", "abort",
		"againNew", "againOld", "againKeep", "againBack", "readBack", "commitBack", "undo", "deleteByForce", "deleteIdle", "recreate", "unlock", "unlockBlind",
		"retireIdle", "evictLeader", "drainIt", "resumeIt", "beginEpoch", "judgeBad",
	}[a]
}
