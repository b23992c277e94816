package leadership

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"regent/leadership/internal/form"
)

// Limits of a hand-over.
const (
	MinWithin     = time.Second
	MaxWithin     = 10 * time.Minute
	DefaultWithin = 30 * time.Second
)

// Succession is a hand-over that is under way, as callers see it.
type Succession struct {
	To      CandidateID   // the successor; "" if there is no hand-over
	Since   time.Time     // when the leader, or an operator, named it; zero of a challenger
	Left    time.Duration // until the present term ends, whether or not the successor is ready
	Ready   bool          // the successor has loaded what it needs
	Yielded bool          // the leader has stopped, and the successor may acquire
}

// HandOver names the candidate that the caller's term is handed over to. The term ends within the
// time given, but not before the end that the leader was promised: then the line goes on, whether
// or not the successor has come. Another successor may be named while the leader has not yielded;
// the time counts anew then. Idempotent for the same successor. A hand-over that was replaced, or
// taken back, is refused if it comes again in the same words: it may be a copy that is late. One to
// a successor that was chosen for the leader leaves the one that was named before. Once a better
// candidate has challenged the leader, it is the successor.
//
// With ToKey the incarnation with that key is the successor, and no other of the same candidate id:
// not one that a third party starts, and not one that the candidate itself starts after a crash.
// Then the lease ends at EndsBy.
//
// Errors: LeaseLost; LeaseHeld, with what bars the successor; NotEligible, if an order or a
// challenge has named another one, or if it was named before.
type HandOver struct {
	LeaseRequest
	To     CandidateID   // "": the best candidate that waits, as far as the Instance knows; a Service alone knows none
	Chosen bool          // To was chosen for the leader, which takes any; set by the Instance that has chosen
	ToKey  KeyHash       // of the incarnation that is meant, set by the Instance in whose line it waits; zero: of the first that says it is ready
	Within time.Duration // the term ends so long from now at the latest: MinWithin to MaxWithin; 0: DefaultWithin
	Reason string        // for people: one line of at most MaxReasonBytes bytes; may be empty
	Halts  Overrides     // of all elections, as far as the Instance that sets them knows
}

func (HandOver) Name() string { return "handOver" }

func (c HandOver) Target() Target { return c.acting() }

func (c HandOver) Validate() error {
	if err := cmp.Or(c.LeaseRequest.Validate(), fields("to", c.To.Validate())); err != nil {
		return err
	}
	switch d := cmp.Or(c.Within, DefaultWithin); {
	case c.To == c.CandidateID:
		return Invalid("to", errors.New("to is another candidate than the leader"))
	case d < MinWithin || d > MaxWithin || d%time.Millisecond != 0:
		return Invalid("within", fmt.Errorf("within is from %s to %s in whole milliseconds, not %s", form.Spoken(MinWithin), form.Spoken(MaxWithin), form.Spoken(d)))
	}
	return fields("reason", form.Line("reason", c.Reason))
}

// SayReady notes that the successor may take the lease over. It has the id and the key of that
// candidate, and the token of the present leader: a copy that comes in a later term binds no
// incarnation that has gone. If it is not said yet which incarnation of the successor is meant (see
// HandOver), it is the one that says so first: no other can take its place. Idempotent.
//
// Errors: TokenStale, in another term; NotEligible, if the caller is not the successor; LeaseHeld
// with ReasonIncarnation.
type SayReady struct{ LeaseRequest }

func (SayReady) Name() string { return "sayReady" }

// SayServing notes that the leader has loaded what it needs, where Config.Promotion waits for that.
// Idempotent.
//
// Errors: LeaseLost.
type SayServing struct{ LeaseRequest }

func (SayServing) Name() string { return "sayServing" }

// Yield says that the leader has stopped: from now on it must not act. The successor takes the
// lease with its next acquire, in one commit with the end of this term. If it has not come within
// YieldWindow, and by the end of the lease, the line goes on.
//
// As Release does, it leaves a term that is over as it is. A caller that has sent a yield must not
// act as the leader again, whatever the answer: a copy that is still under way counts when it
// arrives, also after another one was refused.
//
// Errors: NotReady, while the successor has not said that it is ready, or is barred, or if a limit
// ends the term within half a lease: yield again later, or release; LeaseLost.
type Yield struct{ LeaseRequest }

func (Yield) Name() string { return "yield" }
