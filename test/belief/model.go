package belief

import (
	"cmp"
	"time"

	"regent/leadership"
)

// second is the step of the store's clock.
const second = time.Second

// most is how many candidates a model can have.
const most = 3

// Model is what is searched.
type Model struct {
	Clocks []time.Duration // what each candidate's clock shows in a second; one for each candidate, three at most
	Lease  int             // seconds
	Wait   int             // seconds that an acquire may stand in line
	Line   time.Duration   // what the server's clock, by which it stands there, shows in a second; 0 for a second
	Bug    Bug
	// Only is the one property to look at; "" for all.
	Only Property
}

// Property is what must hold in every state.
type Property string

// The properties. The first is what all is for; the second is ME-2, and the first follows from it and from ME-1.
const (
	NeverTwo      Property = "no two candidates believe that they lead"
	NoneAfterEnd  Property = "no candidate believes that it leads after its lease has ended"
	NoSecondYes   Property = "no candidate believes again in a lease that it had ceased to believe in"
	TokensRise    Property = "each grant has the token after the one before"
	OneLeaseATime Property = "no lease is granted while another lasts"
)

// Bug is a mistake that is made on purpose, to see it found.
type Bug string

// The bugs. Each is one that clients of other services have had.
const (
	None            Bug = ""
	FromReply       Bug = "the deadline is counted from the reply"
	DriftIgnored    Bug = "the deadline does not allow for drift"
	WaitedTwice     Bug = "the time in line is counted twice"
	UnknownExtends  Bug = "an unknown outcome extends the lease"
	LateReplyCounts Bug = "a renewal that is heard of after the deadline revives belief"
	ReleaseFirst    Bug = "the lease is given back before the work has stopped"
	KeyAgain        Bug = "a key is used again after its release was sent"
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
	silence verb = iota
	acquire
	renew
	release
)

func (v verb) String() string { return [...]string{"nothing", "acquire", "renew", "release"}[v] }

// place is where a call is.
type place uint8

const (
	onItsWay place = iota
	inLine
	answered
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

	revived              bool // it believes again in what it could have been told was over
	behind               bool // the lease in its hand, or in its answer, is not the newest
	asked, askedFormerly bool // an acquire with its present key, with an earlier one, was sent, and may arrive again
}

// state is the store and the candidates. All that a candidate does not need in its phase is zero, so that what is the same looks the same.
type state struct {
	lease
	renewed, released bool // a renew, a release of the newest lease was sent, and may arrive again
	candidates        [most]candidate
}

// believers counts who believes that it leads.
func (s *state) believers() (n int) {
	for _, c := range s.candidates {
		if c.until > 0 {
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
	for i, c := range s.candidates {
		switch {
		case c.revived && m.minds(NoSecondYes):
			return NoSecondYes
		case c.until > 0 && (c.behind || !s.heldBy(int8(i), m.Lease)) && m.minds(NoneAfterEnd):
			return NoneAfterEnd
		}
	}
	return ""
}

// minds says whether the property is looked at.
func (m *Model) minds(p Property) bool { return m.Only == "" || m.Only == p }

// tooOld is the age from which on an answer is not believed in whatever it says: longer than the lease and all waiting.
func (m *Model) tooOld() uint8 {
	if m.Bug == WaitedTwice {
		return uint8(m.Lease + 2*m.Wait + 1)
	}
	return uint8(m.Lease + m.Wait + 1)
}

// belief is for how many seconds from now the candidate believes in what it was granted by the call that it has made.
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
