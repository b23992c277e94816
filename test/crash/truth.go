package crash

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"regent/leadership"
)

// asked is one call of the writer, with the entries of the log where it was made and answered.
type asked struct {
	line
	answer line
	at     int
	told   int // never if it was not
}

// never is after the end of every log.
const never = math.MaxInt

// change is what one call did to one election.
type change struct {
	call   *asked
	lease  leadership.Lease // the election after it
	events []leadership.Event
}

// commit is what became durable at once, or would have.
type commit struct {
	at      time.Time // by the store's clock; no two are equal
	changes []change
	asked   int // the entry where the last of its calls was made
	told    int // the entry where the first of them was answered
}

// truth is everything that must be in the file, derived from the writer's answers alone.
type truth struct {
	calls    []*asked
	commits  []commit
	views    []view // views[i] is the store after i commits
	readings []reading
	// when the writer's clock read 0, by the store's; some microseconds too early
	anchor time.Time
}

// reading is what the writer's clock read when it printed something.
type reading struct {
	at    int
	clock time.Duration
}

// truthOf derives the truth from a log. For a run with a failure, clean is the truth of the same
// calls without it, and says what a call may have done whose outcome is unknown; otherwise it is
// nil.
func truthOf(log []entry, clean *truth) (*truth, error) {
	t := &truth{}
	open := make(map[string]*asked)
	for i, e := range log {
		if e.Kind != said {
			continue
		}
		l, err := decode(e.Data)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
		t.readings = append(t.readings, reading{i, time.Duration(l.Reading)})
		switch {
		case l.Closed:
		case !l.Told:
			open[l.ID] = &asked{line: l, at: i, told: never}
			t.calls = append(t.calls, open[l.ID])
		case open[l.ID] != nil:
			open[l.ID].told, open[l.ID].answer = i, l
			t.date(l)
		}
	}
	if clean != nil {
		t.assume(clean)
	}
	t.order()
	return t, t.replay()
}

// assume gives the calls whose outcome is unknown the answers of the clean run. They stay
// unanswered.
func (t *truth) assume(clean *truth) {
	for _, call := range t.calls {
		if call.answer.Code != string(leadership.OutcomeUnknown) {
			continue
		}
		for _, same := range clean.calls {
			if same.ID == call.ID {
				call.answer.Leases, call.answer.Events = same.answer.Leases, same.answer.Events
			}
		}
		call.told = never
	}
}

// date learns the store's time at a reading: an answer is printed after the instant that it shows.
func (t *truth) date(l line) {
	for _, lease := range l.Leases {
		if at := lease.ReadAt.Add(-time.Duration(l.Reading)); t.anchor.Before(at) {
			t.anchor = at
		}
	}
}

// order makes commits of the answers.
func (t *truth) order() {
	found := make(map[time.Time]*commit)
	for _, call := range t.calls {
		for _, ch := range call.changes() {
			at := ch.lease.ReadAt
			c := found[at]
			if c == nil {
				c = &commit{at: at, told: call.told}
				found[at] = c
			}
			c.changes = append(c.changes, ch)
			c.asked, c.told = max(c.asked, call.at), min(c.told, call.told)
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(found), time.Time.Compare) {
		slices.SortStableFunc(found[at].changes, func(a, b change) int { return cmp.Compare(a.lease.Revision, b.lease.Revision) })
		t.commits = append(t.commits, *found[at])
	}
}

// changes returns what the call has changed: elections with new events, and those whose lease
// started anew when it was answered.
func (a *asked) changes() (changes []change) {
	for _, l := range a.answer.Leases {
		var events []leadership.Event
		for _, e := range a.answer.Events {
			if e.Election == l.Election {
				events = append(events, e)
			}
		}
		if len(events) > 0 || l.LastHeartbeat.Equal(l.ReadAt) {
			changes = append(changes, change{a, l, events})
		}
	}
	return changes
}

// replay applies the commits. An answer that cannot follow those before it is an error.
func (t *truth) replay() error {
	t.views = []view{newView()}
	for i, c := range t.commits {
		v := t.views[i].clone()
		for _, ch := range c.changes {
			if err := v.apply(ch); err != nil {
				return fmt.Errorf("call %s has an impossible answer: %w", ch.call.ID, err)
			}
		}
		t.views = append(t.views, v)
	}
	return nil
}

// span returns how many commits an image must have at least, and can have at most: those that had
// been answered, and those that had been asked for.
func (t *truth) span(p plan) (least, most int) {
	for i, c := range t.commits {
		if c.told < p.Seen {
			least = i + 1
		}
	}
	for most < len(t.commits) && t.commits[most].asked < p.At {
		most++
	}
	return least, most
}

// clock returns a reading later than every commit in the image. What was printed is not enough: a
// commit can come after a jump of the clock that is printed later.
func (t *truth) clock(p plan) time.Duration {
	latest := beginning(0)
	for _, r := range t.readings {
		if r.at < p.Seen {
			latest = max(latest, r.clock)
		}
	}
	for _, call := range t.calls {
		if call.Journal != "" && call.at < p.At && call.told != never {
			latest = max(latest, time.Duration(call.answer.Reading))
		}
	}
	for _, c := range t.commits {
		if c.asked < p.At && !t.anchor.IsZero() {
			latest = max(latest, c.at.Sub(t.anchor))
		}
	}
	return latest + time.Millisecond
}
