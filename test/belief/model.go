package belief

import (
	"cmp"
	"time"

	"regent/leadership"
)

// second is the step of the store's clock.
const second = time.Second

// most is how many candidates a model can have.
const most = 4

// Model is what is searched. Clocks and Lease are needed; each of the other fields adds something
// that may happen. Lease, Wait and Delay are 15 s together at most.
type Model struct {
	Name   string          // what it is, in a few words, for reports
	Clocks []time.Duration // what each candidate's clock shows in a second; one for each candidate, four at most. Equal ones stand side by side
	Lease  int             // seconds
	Wait   int             // seconds that an acquire may stand in line; none with Commits
	Line   time.Duration   // what the server's clock, by which it stands there, shows in a second; 0 for a second
	Delay  int             // seconds of the lock delay
	// Operator says that an operator deletes the election, by force or not, and brings it back, at
	// any time and as often as they like.
	Operator bool
	// Commits says that a transaction reads first and commits later, or never, or is aborted and
	// reads again.
	Commits bool
	Bug     Bug
	// Only is the one property to look at; "" for all.
	Only Property
}

// Property is what must hold in every state and at every step.
type Property string

// The properties. The first is what all is for; the second is ME-2, and the first follows from it
// and from ME-1. A lease that an operator has ended lasts, in these words, until it would have
// ended by itself.
const (
	NeverTwo      Property = "no two candidates believe that they lead"
	NoneAfterEnd  Property = "no candidate believes that it leads after its lease has ended"
	NoSecondYes   Property = "no candidate believes again in a lease that it had ceased to believe in"
	TokensRise    Property = "each grant has the token after the one before, and nothing else changes it"
	OneLeaseATime Property = "no lease is granted while another lasts"
	DelayKept     Property = "no lease is granted within the lock delay after one that was not given back"
	EndIsEnd      Property = "nobody is told that a lease goes on which had ended"
)

// Bug is a mistake that is made on purpose, to see it found.
type Bug string

// The bugs. Each is one that clients of other services have had, or their servers.
const (
	None            Bug = ""
	FromReply       Bug = "the deadline is counted from the reply"
	DriftIgnored    Bug = "the deadline does not allow for drift"
	WaitedTwice     Bug = "the time in line is counted twice"
	UnknownExtends  Bug = "an unknown outcome extends the lease"
	LateReplyCounts Bug = "a renewal that is heard of after the deadline revives belief"
	ReleaseFirst    Bug = "the lease is given back before the work has stopped"
	KeyAgain        Bug = "a key is used again after its release was sent"

	EndCounts      Bug = "a renewal at the very end of the lease still counts"
	EarlyGrant     Bug = "the store grants the next lease a second before the end"
	DelayForgotten Bug = "the lock delay is forgotten when the end is recorded"
	CutFrees       Bug = "a delete by force frees the election at once"
	TokenForgotten Bug = "an election that is brought back begins with token 1"
	LateStands     Bug = "a heartbeat that was committed too late is not taken back"
	LateTold       Bug = "a heartbeat that was committed too late is taken back, and its leader told that it stands"
	LateUntilTaken Bug = "a heartbeat that was committed too late counts until it is taken back"
	Unguarded      Bug = "a grant does not mind that the record has changed since it was read"
)

// phase is what a candidate is about.
type phase uint8

const (
	away      phase = iota // nothing
	campaigns              // it wants to lead, and has a key
	leads                  // it has a lease in its hand, which may be over
	resigns                // it gives it back
)

// verb is a call.
type verb uint8

const (
	silence verb = iota // no candidate's: the store looks whether the lease is over
	acquire
	renew
	release

	cut       // an operator deletes the election by force
	drop      // they delete it unless it is held
	bringBack // they configure it
	takeBack  // the service undoes a heartbeat that came too late
)

func (v verb) String() string { return [...]string{"nothing", "acquire", "renew", "release"}[v] }

// place is where a call is.
type place uint8

const (
	onItsWay place = iota
	inLine
	answered
	readLive // its transaction has read a lease that lasts, and is to commit
	readFree // it has read that the next lease may be granted
)

// candidate is all that matters of one.
type candidate struct {
	phase phase
	until uint8 // for how many seconds from now it believes that it leads, if nothing happens

	call   verb
	place  place
	age    uint8 // of what its clock showed before the call, in seconds, up to Model.tooOld
	waited uint8 // in line
	left   uint8 // of the lease, as the answer has it; 0 for a refusal

	behind               bool // the lease in its hand, or in its answer, is not the newest
	asked, askedFormerly bool // an acquire with its present key, with an earlier one, was sent, and may arrive again
}

// state is the store and the candidates. All that a candidate does not need in its phase is zero,
// so that what is the same looks the same.
type state struct {
	lease
	renewed, released bool // a renew, a release of the newest lease was sent, and may arrive again
	releasing         bool // a transaction has read the newest lease while it lasted, and is to commit its release, also if its caller is gone
	candidates        [most]candidate
}

// believers counts who believes that it leads.
func (s *state) believers() (n int) {
	for i := range s.candidates {
		if s.candidates[i].until > 0 {
			n++
		}
	}
	return n
}

// broken is a property that does not hold in the state; "" if all do.
func (m *Model) broken(s *state) Property {
	if s.believers() > 1 && m.minds(NeverTwo) {
		return NeverTwo
	}
	for i := range s.candidates {
		c := &s.candidates[i]
		if c.until > 0 && (c.behind || !s.heldBy(int8(i), m.Lease)) && m.minds(NoneAfterEnd) {
			return NoneAfterEnd
		}
	}
	return ""
}

// minds says whether the property is looked at.
func (m *Model) minds(p Property) bool { return m.Only == "" || m.Only == p }

// tooOld is the age from which on an answer is not believed in whatever it says: longer than the
// lease and all waiting.
func (m *Model) tooOld() uint8 {
	if m.Bug == WaitedTwice {
		return uint8(m.Lease + 2*m.Wait + 1)
	}
	return uint8(m.Lease + m.Wait + 1)
}

// belief is for how many seconds from now the candidate believes in what it was granted by the call
// that it has made.
func (m *Model) belief(who int, c candidate) uint8 {
	clock := m.Clocks[who]
	sent, now := time.Duration(0), clock*time.Duration(c.age)
	deadline := m.deadline(sent, now, cmp.Or(m.Line, second)*time.Duration(c.waited), second*time.Duration(c.left))
	var seconds uint8
	for ; now < deadline; now += clock {
		seconds++
	}
	return seconds
}

func (m *Model) deadline(sent, now, waited, left time.Duration) time.Duration {
	const margin = 0 // more would only be safer
	switch m.Bug {
	case FromReply:
		return leadership.Deadline(now, waited, left, margin)
	case DriftIgnored:
		return sent + waited + left
	case WaitedTwice:
		return leadership.Deadline(sent, 2*waited, left, margin)
	}
	return leadership.Deadline(sent, waited, left, margin)
}
