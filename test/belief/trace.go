package belief

import (
	"fmt"
	"slices"
	"strings"
	"time"
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
	t := teller{model: x.model}
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
			t.tell(st, from, s, x.granted)
		}
		x.broken, x.granted = "", false
	})
	return to
}

// teller describes steps. It counts seconds and tokens, which states do not have.
type teller struct {
	model *Model
	lines []string
	time  int
	token int
}

func (t *teller) tell(st step, from, to state, granted bool) {
	if st.act == tick {
		t.time++
	}
	if granted {
		t.token++
	}
	t.lines = append(t.lines, fmt.Sprintf("%d s: %s: %s", t.time, t.words(st, from), t.situation(to)))
}

// words returns the step in words.
func (t *teller) words(st step, from state) string {
	if st.act == tick {
		return "a second has passed" + t.clocks()
	}
	text := [...]string{
		expire:    "the store checks the lease of %s",
		begin:     "%s draws a key, looks at its clock and sends an acquire",
		ask:       "%s looks at its clock and sends the acquire again",
		abandon:   "%s gives up its campaign, and learns that it leads",
		keep:      "%s looks at its clock and sends a renew",
		stop:      "%s has stopped its work",
		giveBack:  "%s sends a release",
		leave:     "%s is killed",
		giveUp:    "%s no longer waits for the answer to its %s",
		hear:      "%s receives the answer to its %s",
		arrive:    "the call of %s, %s, reaches the store",
		try:       "the call of %s, %s, is tried again from the queue",
		commit:    "the transaction of the call of %s, %s, which had read, commits",
		abort:     "the transaction of the call of %s, %s, is aborted",
		againNew:  "an acquire of %s arrives once more",
		againOld:  "an acquire of %s with an earlier key arrives once more",
		againKeep: "a renew of %s arrives once more",
		againBack: "a release of %s arrives once more",

		readBack:      "a release of %s arrives once more, and its transaction reads",
		commitBack:    "a transaction that has read for a release of %s commits",
		undo:          "the service takes the late heartbeat of %s back",
		deleteByForce: "an operator deletes the election by force",
		deleteIdle:    "an operator deletes the election unless it is held",
		recreate:      "an operator recreates the election",
		unlock:        "an operator unlocks the election, and acknowledges what that risks",
		unlockBlind:   "an operator unlocks the election without an acknowledgement",
		retireIdle:    "a tick retires the election",
		evictLeader:   "an operator evicts the leader",
		drainIt:       "an operator pauses the election, and drains it",
		resumeIt:      "an operator resumes the election",
		beginEpoch:    "an operator begins a new epoch",
		judgeBad:      "a verdict ends the leader's term",
	}[st.act]
	switch strings.Count(text, "%s") {
	case 0:
		return text
	case 1:
		return fmt.Sprintf(text, name(st.who))
	}
	return fmt.Sprintf(text, name(st.who), from.candidates[st.who].call)
}

// clocks returns the readings of the candidates' clocks.
func (t *teller) clocks() string {
	var shown []string
	for i, clock := range t.model.Clocks {
		shown = append(shown, fmt.Sprintf("%s's clock %v", name(int8(i)), time.Duration(t.time)*clock))
	}
	return " (" + strings.Join(shown, ", ") + ")"
}

// situation returns which candidate leads, and which believe that they lead.
func (t *teller) situation(s state) string {
	text := "vacant"
	switch left := s.left(t.model); {
	case s.recorded() != 0 && left > 0:
		text = fmt.Sprintf("%s has token %d for %d s", name(s.leader-1), t.token, left)
	case s.recorded() != 0:
		text = fmt.Sprintf("%s had token %d until %d s ago", name(s.leader-1), t.token, -left)
	case s.deleted:
		text = "the election is deleted"
	}
	if s.cap > 0 {
		text += fmt.Sprintf(", to end in %d s", s.cap)
	}
	if s.paused {
		text += ", paused"
	}
	if s.lock > 0 {
		text += fmt.Sprintf(", locked for %d s", s.lock)
	}
	for i, c := range s.candidates {
		if c.until > 0 {
			text += fmt.Sprintf("; %s believes for %d s", name(int8(i)), c.until)
		}
	}
	return text
}
