package checker

import (
	"math"
	"slices"
	"sync"
	"time"

	"regent/leadership"
)

// Forever is the end of a call whose answer never came.
const Forever time.Duration = math.MaxInt64

// Recording is what happened in one run. All times are on one clock, which never goes back.
type Recording struct {
	History    []leadership.Event // the truth: all elections, each from its first revision, in order
	Consumers  []Consumer
	Changes    []Change
	Heartbeats []Heartbeat
	Readings   []Reading
	Calls      []Call
	Beliefs    []Belief
	Writes     []Write
	Faults     []Fault
	Willing    []Willing
}

// Consumer is somebody who is told of changes.
type Consumer struct {
	Name      string                                      `json:"name"`
	Elections []leadership.Election                       `json:"elections,omitempty"` // those that it is to hear of; none for all
	After     map[leadership.Election]leadership.Revision `json:"after,omitempty"`     // what it knew to begin with
	Partial   bool                                        `json:"partial,omitempty"`   // it has stopped: what comes after the last that it got may be missing
	Got       []leadership.Event                          `json:"-"`                   // in the order in which it got them
}

// Change says when a revision was committed: after its maker had asked, and before it was answered. A revision that nobody tells of, such as the end
// of a lease that ran out, was committed at some time between its neighbours.
type Change struct {
	Election leadership.Election `json:"election"`
	Revision leadership.Revision `json:"revision"`
	Asked    time.Duration       `json:"asked"`
	Answered time.Duration       `json:"answered"` // Forever if the answer was lost
}

// Heartbeat is a grant or a renewal that was asked for and not refused. With all of those of a token recorded it is known until when its leader
// may have led; with none, nothing is said about it.
type Heartbeat struct {
	Election leadership.Election `json:"election"`
	Token    leadership.Token    `json:"token"`
	Lease    time.Duration       `json:"lease"`
	Asked    time.Duration       `json:"asked"`
	Answered time.Duration       `json:"answered"` // Forever if the answer was lost
}

// Reading is what a reader was shown of an election.
type Reading struct {
	Reader   string                 `json:"reader"` // whose readings never go back: of one instance, one after the other
	Election leadership.Election    `json:"election"`
	Revision leadership.Revision    `json:"revision"`
	State    leadership.State       `json:"state"`
	Leader   leadership.CandidateID `json:"leader,omitempty"`
	Token    leadership.Token       `json:"token"`
	Asked    time.Duration          `json:"asked"`
	Answered time.Duration          `json:"answered"`
	Strong   bool                   `json:"strong,omitempty"` // it was to come from the store, and has no age
	Age      time.Duration          `json:"age,omitempty"`    // as stated, rounded up by less than AgeUnit
	Bound    time.Duration          `json:"bound,omitempty"`  // the most that the age may be, as stated
	Known    leadership.Revision    `json:"known,omitempty"`  // the revision that the reader said it has seen
}

// AgeUnit is what HTTP counts the age of an answer in.
const AgeUnit = time.Second

// Recorder takes down a Recording, from several goroutines. Its zero value is ready.
type Recorder struct {
	mu        sync.Mutex // guards all below
	recording Recording
	consumers map[string]int // the place of each in the recording
}

// Expect names somebody who is going to be told of changes. Got is left as it is. To name it again does nothing.
func (r *Recorder) Expect(c Consumer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.consumer(c)
}

func (r *Recorder) consumer(c Consumer) *Consumer {
	i, ok := r.consumers[c.Name]
	if !ok {
		if r.consumers == nil {
			r.consumers = make(map[string]int)
		}
		i = len(r.recording.Consumers)
		r.consumers[c.Name] = i
		r.recording.Consumers = append(r.recording.Consumers, c)
	}
	return &r.recording.Consumers[i]
}

// Deliver takes down that a consumer got events, and returns how many it has got so far.
func (r *Recorder) Deliver(consumer string, events ...leadership.Event) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.consumer(Consumer{Name: consumer})
	c.Got = append(c.Got, events...)
	return len(c.Got)
}

// Change takes down when a revision was committed.
func (r *Recorder) Change(c Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recording.Changes = append(r.recording.Changes, c)
}

// Heartbeat takes down a grant or a renewal.
func (r *Recorder) Heartbeat(h Heartbeat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recording.Heartbeats = append(r.recording.Heartbeats, h)
}

// Read takes down what a reader was shown.
func (r *Recorder) Read(reading Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recording.Readings = append(r.recording.Readings, reading)
}

// Call takes down a call on the service.
func (r *Recorder) Call(c Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recording.Calls = append(r.recording.Calls, c)
}

// Believe takes down that somebody believed that it led.
func (r *Recorder) Believe(b Belief) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recording.Beliefs = append(r.recording.Beliefs, b)
}

// Write takes down a leader's write.
func (r *Recorder) Write(w Write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recording.Writes = append(r.recording.Writes, w)
}

// Fault takes down what was done to the parts of the system.
func (r *Recorder) Fault(f Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recording.Faults = append(r.recording.Faults, f)
}

// Willing takes down that somebody wanted to lead.
func (r *Recorder) Willing(w Willing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recording.Willing = append(r.recording.Willing, w)
}

// Recording returns what was taken down so far, with the store's history beside it.
func (r *Recorder) Recording(history []leadership.Event) Recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.recording
	c.History = history
	c.Consumers, c.Changes = slices.Clone(c.Consumers), slices.Clone(c.Changes)
	c.Heartbeats, c.Readings = slices.Clone(c.Heartbeats), slices.Clone(c.Readings)
	c.Calls, c.Beliefs, c.Writes = slices.Clone(c.Calls), slices.Clone(c.Beliefs), slices.Clone(c.Writes)
	c.Faults, c.Willing = slices.Clone(c.Faults), slices.Clone(c.Willing)
	return c
}
