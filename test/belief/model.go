package belief

import (
	"cmp"
	"time"

	"regent/leadership"
)

// second is the step of the store's clock.
const second = time.Second

// most is the largest number of candidates in a model.
const most = 4

// Model is the model that Search explores. Clocks and Lease are required; each other field adds
// something that may happen. Lease, Wait and Delay are at most 15 s together.
type Model struct {
	Name string // a few words, for reports
	// what each candidate's clock shows in a second; four at most, equal ones side by side
	Clocks []time.Duration
	Lease  int // seconds
	Wait   int // seconds that an acquire may wait; none with Commits
	// what the server's clock, which measures the wait, shows in a second; 0 for a second
	Line  time.Duration
	Delay int // seconds of the lock delay
	// Operator: an operator deletes the election, by force or not, and recreates it, and a tick
	// retires it, at any time and any number of times.
	Operator bool
	// Unlock: an operator unlocks the election, with the acknowledgement that the refusal asks for
	// or without any, at any time and any number of times.
	Unlock bool
	// Orders: an operator evicts the leader, pauses the election so that it ends, and resumes it,
	// at any time and any number of times.
	Orders bool
	// Epochs: an operator lets the leader go on under the next token, any number of times.
	Epochs bool
	// Trips: a verdict on the leader's work ends its term, any number of times.
	Trips bool
	// Commits: a transaction reads first and commits later, or never, or is aborted and reads
	// again.
	Commits bool
}

// Property must hold in every state and at every step.
type Property string

// The properties. The first is the purpose of all; the second is ME-2, and with ME-1 implies the
// first. A lease that an operator has deleted counts as lasting until it would have ended by
// itself. The leader of a lease that an operator has unlocked, with the acknowledgement, is
// excused.
const (
	NeverTwo      Property = "no two candidates believe that they lead"
	NoneAfterEnd  Property = "no candidate believes that it leads after its lease has ended"
	TokensRise    Property = "each grant has the token after the one before, and nothing else changes it"
	OneLeaseATime Property = "no lease is granted while another lasts"
	DelayKept     Property = "no lease is granted within the lock delay after one that was not released"
	EndIsEnd      Property = "no caller is told that an ended lease goes on"
	PromiseKept   Property = "no operator's order makes a lease end before what its leader was promised"
	CapKept       Property = "no renewal passes the end that an operator has ordered"
	PauseKept     Property = "no lease is granted while the election is paused"
)

// phase is the activity of a candidate.
type phase uint8

const (
	away      phase = iota // nothing
	campaigns              // it wants to lead, and has a key
	leads                  // it has a lease, which may be over
	resigns                // it releases its lease
)

func (p phase) String() string { return [...]string{"away", "campaigns", "leads", "resigns"}[p] }

// verb is a call.
type verb uint8

const (
	silence verb = iota // no call: the store checks whether the lease is over
	acquire
	renew
	release

	cut       // an operator deletes the election by force
	drop      // an operator deletes it unless it is held
	bringBack // an operator recreates it
	free      // an operator unlocks it, and acknowledges what the refusal says
	freeBlind // an operator unlocks it without an acknowledgement
	retire    // a tick retires it, if it was vacant for long enough
	evict     // an operator ends the term, at the end that was promised
	drain     // an operator pauses the election, and so ends the term
	resume    // an operator ends the pause
	epoch     // an operator lets the leader go on under the next token
	depose    // a verdict ends the term
	takeBack  // the service undoes a heartbeat that came too late
)

func (v verb) String() string { return [...]string{"none", "acquire", "renew", "release"}[v] }

// place is where a call is.
type place uint8

const (
	onItsWay place = iota
	inLine
	answered
	readLive // its transaction has read a lease that lasts, and will commit
	readFree // it has read that the next lease may be granted
)

func (p place) String() string {
	return [...]string{"onItsWay", "inLine", "answered", "readLive", "readFree"}[p]
}

// candidate is the state of a candidate.
type candidate struct {
	phase phase
	until uint8 // seconds from now for which it believes that it leads, if nothing happens

	call   verb
	place  place
	age    uint8 // seconds since the clock reading before the call, up to Model.tooOld
	waited uint8 // in the queue
	left   uint8 // of the lease, by the answer; 0 for a refusal

	stale  bool // its leader goes on under a later token, and it has not learned of that
	behind bool // the lease that it has, or its answer has, is not the newest
	// an operator has unlocked the election after that lease: it may believe in it
	excused bool
	// an acquire with its present key, or an earlier one, was sent, and may arrive again
	asked, askedFormerly bool
}

// state is the store and the candidates. Fields that a candidate does not need in its phase are
// zero, so that equal states compare equal.
type state struct {
	lease
	renewed, released bool // a renew, a release of the newest lease was sent, and may arrive again
	// a transaction has read the newest lease while it lasted, and will commit its release, with or
	// without a caller
	releasing  bool
	candidates [most]candidate
}

// believers counts the candidates that believe that they lead.
func (s *state) believers() (n int) {
	for i := range s.candidates {
		if s.candidates[i].until > 0 && !s.candidates[i].excused {
			n++
		}
	}
	return n
}

// broken returns a property that does not hold in the state; "" if all hold.
func (m *Model) broken(s *state) Property {
	if s.believers() > 1 {
		return NeverTwo
	}
	for i := range s.candidates {
		c := &s.candidates[i]
		if c.until > 0 && !c.excused && (c.behind || !s.heldBy(int8(i), m.Lease)) {
			return NoneAfterEnd
		}
	}
	return ""
}

// tooOld returns the age from which no answer is believed: longer than the lease and all waiting.
func (m *Model) tooOld() uint8 {
	return uint8(m.Lease + m.Wait + 1)
}

// belief returns for how many seconds from now the candidate believes in the lease that its call
// was granted.
func (m *Model) belief(who int, c candidate) uint8 {
	clock := m.Clocks[who]
	sent, now := time.Duration(0), clock*time.Duration(c.age)
	const margin = 0 // a larger one is only safer
	deadline := leadership.Deadline(sent, cmp.Or(m.Line, second)*time.Duration(c.waited), second*time.Duration(c.left), margin)
	var seconds uint8
	for ; now < deadline; now += clock {
		seconds++
	}
	return seconds
}
