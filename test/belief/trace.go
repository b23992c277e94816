package belief

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// trace tells how the state was come to, by a last step from one that is known.
func (x *search) trace(from int32, last step, to state) []string {
	way := []visited{{state: to, step: last}}
	for at := from; at >= 0; at = x.states[at].from {
		way = append(way, x.states[at])
	}
	slices.Reverse(way)
	t := teller{model: x.model}
	for i, v := range way[1:] {
		t.tell(v.step, way[i].state, v.state)
	}
	return t.lines
}

// teller puts steps into words. It counts what a state has no need of: seconds and tokens.
type teller struct {
	model *Model
	lines []string
	time  int
	token int
}

func (t *teller) tell(st step, from, to state) {
	if st.act == tick {
		t.time++
	}
	if t.granted(from, to) {
		t.token++
	}
	t.lines = append(t.lines, fmt.Sprintf("%d s: %s: %s", t.time, t.words(st, from), t.situation(to)))
}

// words are what the step is called.
func (t *teller) words(st step, from state) string {
	if st.act == tick {
		return "a second has gone by" + t.clocks()
	}
	text := [...]string{
		expire:    "the store looks after the lease of %s",
		begin:     "%s draws a key, looks at its clock and sends an acquire",
		ask:       "%s looks at its clock and sends the acquire again",
		abandon:   "%s gives its campaign up, and reads that it leads",
		keep:      "%s looks at its clock and sends a renew",
		stop:      "%s has stopped its work",
		giveBack:  "%s sends a release",
		leave:     "%s is killed",
		giveUp:    "%s waits no longer for an answer to its %s",
		hear:      "%s hears the answer to its %s",
		arrive:    "the call of %s, %s, reaches the store",
		try:       "the call of %s, %s, is tried again from the line",
		againNew:  "an acquire of %s arrives once more",
		againOld:  "an acquire of %s with an earlier key arrives once more",
		againKeep: "a renew of %s arrives once more",
		againBack: "a release of %s arrives once more",
	}[st.act]
	if strings.Count(text, "%s") == 1 {
		return fmt.Sprintf(text, name(st.who))
	}
	return fmt.Sprintf(text, name(st.who), from.candidates[st.who].call)
}

// granted says whether the step was a grant: to somebody else, or of a lease that was over.
func (t *teller) granted(from, to state) bool {
	switch {
	case to.leader == 0:
		return false
	case from.leader != to.leader:
		return true
	}
	return int(from.age) == t.model.Lease && to.age == 0
}

// clocks are what the candidates' clocks show.
func (t *teller) clocks() string {
	var shown []string
	for i, clock := range t.model.Clocks {
		shown = append(shown, fmt.Sprintf("%s's clock %v", name(int8(i)), time.Duration(t.time)*clock))
	}
	return " (" + strings.Join(shown, ", ") + ")"
}

// situation is who leads and who believes it.
func (t *teller) situation(s state) string {
	text := "nobody leads"
	if s.leader != 0 {
		text = fmt.Sprintf("%s has token %d for %d s", name(s.leader-1), t.token, t.model.Lease-int(s.age))
	}
	for i, c := range s.candidates {
		if c.until > 0 {
			text += fmt.Sprintf("; %s believes for %d s", name(int8(i)), c.until)
		}
	}
	return text
}
