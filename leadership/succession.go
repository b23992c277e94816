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
	Since   time.Time     // when the leader or an operator named it; zero for a challenger
	Left    time.Duration // until the present term ends, whether or not the successor is ready
	Ready   bool          // the successor has loaded what it needs
	Yielded bool          // the leader has stopped, and the successor may acquire
}

// HandOver names the successor of the caller's term. The term ends after Within, but not before the
// end that the leader was promised; then the next in line is granted, whether or not the successor
// has come. Until it yields, the leader may name another successor, which starts the time anew.
//
// Idempotent for the same successor. A hand-over that was replaced or taken back is refused if it
// comes again in the same words, for it may be a late copy. One with Chosen keeps a successor that
// was named before. Once a better candidate has challenged the leader, that is the successor.
//
// With ToKey only the incarnation with that key is the successor. Another process with the same
// candidate id is not, whether a third party or the candidate itself, after a crash, has started
// it. In that case the lease ends at EndsBy.
//
// Errors: LeaseLost; LeaseHeld, with the order that bars the successor; NotEligible, if an order or
// a challenge has named another successor, or if this one was named before.
type HandOver struct {
	LeaseRequest
	To     CandidateID   // "": the best waiting candidate that the Instance knows; a Service alone knows none
	Chosen bool          // To was chosen by the Instance, because the leader accepts any successor
	ToKey  KeyHash       // of the successor's incarnation, set by the Instance in whose line it waits; zero: the first that says it is ready
	Within time.Duration // the term ends after this time at the latest: MinWithin to MaxWithin; 0: DefaultWithin
	Reason string        // for people: one line of at most MaxReasonBytes bytes; may be empty
	Halts  Overrides     // the halts that the Instance knows of; set by the Instance
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

// SayReady notes that the successor is ready to take the lease over. It carries the successor's id
// and key, and the token of the present leader, so that a late copy has no effect in a later term.
// If the hand-over named no incarnation of the successor (see HandOver.ToKey), the first that says
// it is ready becomes the successor, and no other can replace it. Idempotent.
//
// Errors: TokenStale, if the token is not that of the present term; NotEligible, if the caller is
// not the successor; LeaseHeld with ReasonIncarnation, if another incarnation is.
type SayReady struct{ LeaseRequest }

func (SayReady) Name() string { return "sayReady" }

// SayServing notes that the leader is ready to serve, where Config.Promotion requires that.
// Idempotent.
//
// Errors: LeaseLost.
type SayServing struct{ LeaseRequest }

func (SayServing) Name() string { return "sayServing" }

// Yield says that the leader has stopped: from now on it must not act. The successor's next acquire
// ends this term and takes the lease in one commit. If the successor does not acquire within
// YieldWindow, or before the lease ends, the next in line is granted.
//
// Like Release, it does nothing if the term is over. A caller that has sent a yield must not act as
// the leader again, whatever the answer: a copy still under way takes effect when it arrives, even
// after another copy was refused.
//
// Errors: NotReady, if the successor has not said that it is ready, or is barred, or if a limit
// ends the term within half a lease: yield again later, or release; LeaseLost.
type Yield struct{ LeaseRequest }

func (Yield) Name() string { return "yield" }
