package view

import (
	"container/heap"
	"iter"
	"maps"
	"math"
	"time"

	"regent/leadership"
)

// Config says how to make a View. The zero Config only lacks Jitter.
type Config struct {
	// Expiry is how old a cached reading may be.
	Expiry time.Duration
	// Size is how many elections are kept at most for readers.
	Size int
	// Jitter draws a duration from 0 up to the limit, which is positive.
	Jitter func(limit time.Duration) time.Duration
	// Live says that all events are heard to begin with.
	Live bool
}

// Poll is how often an instance looks by itself, for watchers and waiting candidates, while not all
// events are heard.
const Poll = 5 * time.Second

// View is an instance's knowledge of the elections. Its methods must not be called concurrently.
// The argument now is a reading of the driver's clock, which must never go back, and asked a
// reading from before the store was asked.
type View struct {
	c         Config
	live      bool
	epoch     int           // how often SetLive was called
	guard     time.Duration // of the store, as seen from its refusals
	elections map[leadership.Election]*Election
	kept      map[*Election]struct{} // elections whose lease is cached for readers
	sweepAt   time.Duration          // no sweep before that
	schedule  schedule
	sooner    bool
	reported  []*Election            // see Reported
	renewed   map[*Election]struct{} // see RenewedHere; some may have ended
	thinAt    time.Duration          // no thin before that
}

// New returns a view that knows nothing.
func New(c Config) *View {
	return &View{
		c: c, live: c.Live,
		elections: make(map[leadership.Election]*Election),
		kept:      make(map[*Election]struct{}),
		renewed:   make(map[*Election]struct{}),
	}
}

// Election is a view's knowledge of one election. It exists while there is anything to remember, or
// while it is held.
type Election struct {
	Listeners
	view *View
	name leadership.Election

	reads    int // reads of the store in progress
	waiters  int
	watchers int
	holders  int

	lease   *Lease              // the store's last answer, if it is kept for readers or waiters
	event   *leadership.Event   // the newest heard event, if it is newer than the store's last answer
	newest  leadership.Revision // the highest revision learnt or heard
	changed time.Duration       // when any of these changed
	open    time.Duration
	putOff  int                 // counts how often open was put off
	version int                 // counts the changes that concern a line
	terms   int                 // counts the changes of leader that were heard of
	orders  int                 // counts the events that may have unbarred a candidate
	ordered leadership.Revision // of the newest of these events

	succession succession
	assigned   assigned
	journal    leadership.Index // the last known index of its journal

	end     end
	history *history // while there are watchers
	report  *Report  // while there are watchers

	at    time.Duration // its place in the schedule: never after its next moment
	index int           // in the schedule; -1 if it is not there
}

// Listeners are the channels by which the driver wakes the listeners of an election. The view does
// not use them.
type Listeners struct {
	Lines   map[chan struct{}]struct{} // the wake of each Wait, a channel of one
	News    chan struct{}              // closed when there is news for the watches; nil if none waits
	Appends chan struct{}              // of one: the journal has new entries; nil if nothing follows it
}

// Elections returns how many elections are remembered.
func (v *View) Elections() int { return len(v.elections) }

// Live reports whether all events are heard.
func (v *View) Live() bool { return v.live }

// Epoch counts the calls of SetLive.
func (v *View) Epoch() int { return v.epoch }

// SetLive sets whether all events are heard from now on. If they are, watchers must look once more,
// because some may have been missed before.
func (v *View) SetLive(live bool, now time.Duration) {
	v.live = live
	v.epoch++
	for _, e := range v.elections {
		e.assigned = assigned{as: e.newest} // the lift may have been missed; if it was not, the store says so again
		if e.history != nil {
			e.history.doubt(live, now)
			v.settle(e)
		}
	}
}

// Wait makes a line of candidates listen to the election, for its lease or because it is the
// parent: the driver sends to wake when there is news. The Election is remembered until Unwait.
func (v *View) Wait(name leadership.Election, wake chan struct{}) *Election {
	e := v.election(name)
	if e.waiters++; e.Lines == nil {
		e.Lines = make(map[chan struct{}]struct{})
	}
	e.Lines[wake] = struct{}{}
	return e
}

// Unwait ends the listening.
func (v *View) Unwait(e *Election, wake chan struct{}) {
	e.waiters--
	delete(e.Lines, wake)
	v.settle(e)
}

// Watch adds a watcher to the election, which is remembered until Unwatch.
func (v *View) Watch(name leadership.Election) *Election {
	e := v.election(name)
	if e.watchers++; e.history == nil {
		e.history = new(history)
	}
	v.settle(e)
	return e
}

// Unwatch removes a watcher.
func (v *View) Unwatch(e *Election) {
	if e.watchers--; e.watchers == 0 {
		e.report = nil
	}
	v.settle(e)
}

// Hold keeps the election remembered, with the store's last answer, until Release. It causes no
// looks.
func (v *View) Hold(name leadership.Election) *Election {
	e := v.election(name)
	e.holders++
	return e
}

// Release ends a Hold.
func (v *View) Release(e *Election) {
	e.holders--
	v.settle(e)
}

// Listened reports whether the election has watchers or waiters.
func (v *View) Listened(name leadership.Election) bool {
	e, ok := v.elections[name]
	return ok && e.listened()
}

func (e *Election) listened() bool { return e.waiters+e.watchers > 0 }

// Find returns the election; nil if it is not remembered.
func (v *View) Find(name leadership.Election) *Election { return v.elections[name] }

// All yields the remembered elections, in no order.
func (v *View) All() iter.Seq[*Election] { return maps.Values(v.elections) }

// Name returns the election's name.
func (e *Election) Name() leadership.Election { return e.name }

// wanted reports whether the lease is to be remembered.
func (e *Election) wanted() bool { return e.waiters+e.holders > 0 || e.isKept() }

func (e *Election) isKept() bool {
	_, kept := e.view.kept[e]
	return kept
}

func (v *View) election(name leadership.Election) *Election {
	e, ok := v.elections[name]
	if !ok {
		e = &Election{view: v, name: name, index: -1}
		v.elections[name] = e
	}
	return e
}

// settle drops state that is no longer needed, and puts the election in its place in the schedule.
func (v *View) settle(e *Election) {
	if !e.listened() {
		e.history = nil
	}
	if !e.wanted() {
		e.lease = nil
	}
	if e.lease == nil && e.reads+e.holders == 0 && !e.listened() && e.end.revision == 0 {
		delete(v.elections, e.name)
		delete(v.renewed, e)
	}
	next, _ := e.next()
	switch {
	case e.index < 0 && next < never:
		e.at = next
		heap.Push(&v.schedule, e)
	case e.index >= 0 && next == never:
		heap.Remove(&v.schedule, e.index)
	case e.index >= 0 && next < e.at:
		e.at = next
		heap.Fix(&v.schedule, e.index)
	default: // renewals leave the place as it is: one that is too early costs nothing
		return
	}
	v.sooner = v.sooner || e.index == 0
}

// never is the next moment of an election that need not be looked at.
const never = time.Duration(math.MaxInt64)

// Reason says why to look at an election.
type Reason int

// The reasons; see the package comment.
const (
	End Reason = iota + 1
	Watcher
	Missing
	Silence
	Failed
)

// Task is work for an election. For End and Watcher: record that its lease has run out, if it has,
// and call Expired. For the others: read its history after that revision, and call Looked.
type Task struct {
	Election leadership.Election
	Reason   Reason
	After    leadership.Revision

	revision leadership.Revision // of the lease that may have run out
}

// Next returns the next task that is due now; ok is false if there is none before at. After a task,
// call it again: others may be due.
func (v *View) Next(now time.Duration) (t Task, at time.Duration, ok bool) {
	v.sooner = false
	for len(v.schedule) > 0 {
		e := v.schedule[0]
		next, reason := e.next()
		switch {
		case e.at > now:
			return t, e.at, false
		case next > now:
			e.at = next
			heap.Fix(&v.schedule, 0)
		default:
			t = e.begin(reason)
			v.settle(e)
			return t, now, true
		}
	}
	return t, never, false
}

// Sooner reports whether a task is due sooner than the last call of Next has said.
func (v *View) Sooner() bool { return v.sooner }

// next returns the next moment to look at the election, and why.
func (e *Election) next() (time.Duration, Reason) {
	at, reason := never, Reason(0)
	if e.end.revision > 0 && !e.end.looking {
		at, reason = e.end.due, End
		if e.end.elsewhere > 0 && e.listened() {
			reason = Watcher
		}
	}
	if e.watchers > 0 && !e.history.looking {
		if due, why := e.history.next(e.view.live); due < at {
			return due, why
		}
	}
	return at, reason
}

// begin notes that the election is being looked at.
func (e *Election) begin(why Reason) Task {
	if why == End || why == Watcher {
		e.end.looking = true
		return Task{Election: e.name, Reason: why, revision: e.end.revision}
	}
	e.history.looking = true
	t := Task{Election: e.name, Reason: why, After: e.history.head()}
	if why == Failed {
		t.After = e.history.retry
	}
	return t
}

// schedule is a heap of elections by their places.
type schedule []*Election

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].at < s[j].at }

func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

func (s *schedule) Push(e any) {
	e.(*Election).index = len(*s)
	*s = append(*s, e.(*Election))
}

func (s *schedule) Pop() any {
	old := *s
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	e.index = -1
	return e
}
