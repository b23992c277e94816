package simulation

import (
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
	"time"
)

// timeline has the simulated time, the random source, and the scheduled events.
type timeline struct {
	now    time.Duration // since the run began
	random *rand.Rand
	agenda agenda

	processes []*process // that have nothing to do
	started   []*process // all of them

	digest uint64    // of all that has happened
	log    io.Writer // nil: no log
}

func newTimeline(seed uint64, log io.Writer) *timeline {
	return &timeline{random: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), log: log}
}

// event is a scheduled call. Of two at the same moment the one that was scheduled first comes
// first.
type event struct {
	at    time.Duration
	order uint64
	do    func()
}

// agenda has all scheduled events: a heap, the soonest first.
type agenda struct {
	events []event
	next   uint64
}

func (a *agenda) before(i, j int) bool {
	x, y := &a.events[i], &a.events[j]
	return x.at < y.at || x.at == y.at && x.order < y.order
}

func (a *agenda) add(at time.Duration, do func()) {
	a.next++
	a.events = append(a.events, event{at, a.next, do})
	for i := len(a.events) - 1; i > 0 && a.before(i, (i-1)/2); i = (i - 1) / 2 {
		a.events[i], a.events[(i-1)/2] = a.events[(i-1)/2], a.events[i]
	}
}

// take removes the soonest.
func (a *agenda) take() event {
	soonest, last := a.events[0], len(a.events)-1
	a.events[0] = a.events[last]
	a.events[last] = event{}
	a.events = a.events[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if a.before(child, least) {
				least = child
			}
		}
		if least == i {
			return soonest
		}
		a.events[i], a.events[least] = a.events[least], a.events[i]
		i = least
	}
}

// at schedules do at a moment, not before now.
func (w *timeline) at(when time.Duration, do func()) { w.agenda.add(max(when, w.now), do) }

// after schedules do after a while.
func (w *timeline) after(d time.Duration, do func()) { w.at(w.now+max(d, 0), do) }

// run lets all events happen that are scheduled up to a moment.
func (w *timeline) run(until time.Duration) {
	for len(w.agenda.events) > 0 && w.agenda.events[0].at <= until {
		e := w.agenda.take()
		w.now = e.at
		e.do()
	}
	w.now = until
}

// note adds what has happened to the digest: runs that differ in anything have different digests.
func (w *timeline) note(what string, number int64) {
	for _, v := range [...]uint64{uint64(w.now), uint64(number)} {
		w.digest = bits.RotateLeft64((w.digest^v)*0x9e3779b97f4a7c15, 29)
	}
	for i := range len(what) {
		w.digest = (w.digest ^ uint64(what[i])) * 0x100000001b3
	}
}

// tell writes a line to the log, if there is one.
func (w *timeline) tell(format string, args ...any) {
	if w.log != nil {
		fmt.Fprintf(w.log, "%15.6f s  %s\n", w.now.Seconds(), fmt.Sprintf(format, args...))
	}
}

// chance returns true with that probability.
func (w *timeline) chance(p float64) bool { return p > 0 && w.random.Float64() < p }

// upTo draws a duration from 0 up to a limit; 0 for a limit that is not positive.
func (w *timeline) upTo(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return time.Duration(w.random.Int64N(int64(limit)))
}

// between draws a duration.
func (w *timeline) between(least, most time.Duration) time.Duration {
	return least + w.upTo(most-least)
}

// about draws the time until something that happens once in so long on average.
func (w *timeline) about(mean time.Duration) time.Duration {
	return time.Duration(w.random.ExpFloat64() * float64(mean))
}

// clock is the clock of one process: it never goes back.
type clock struct {
	rate  int64         // how much it advances in 1,000,000 units of real time
	ahead time.Duration // by which it has leapt
}

const exact = 1_000_000

// at returns what it shows at a moment.
func (c *clock) at(now time.Duration) time.Duration {
	hi, lo := bits.Mul64(uint64(now), uint64(c.rate))
	shown, _ := bits.Div64(hi, lo, exact)
	return time.Duration(shown) + c.ahead
}

// until returns how long it takes to advance by so much.
func (c *clock) until(more time.Duration) time.Duration {
	hi, lo := bits.Mul64(uint64(max(more, 0)), exact)
	real, rest := bits.Div64(hi, lo, uint64(c.rate))
	if rest > 0 {
		real++
	}
	return time.Duration(real)
}

// when returns the moment from which it shows so much.
func (c *clock) when(shown time.Duration) time.Duration { return c.until(shown - c.ahead) }
