package leadership

import "time"

// Belief is what a leader may believe of one lease, on its own clock: that it leads until a
// Deadline, which only a successful answer moves, and never back. Once it has come to its end it
// stays there. The clock is one as Deadline needs.
type Belief struct {
	deadline time.Duration
	margin   time.Duration
	over     bool
}

// Believe returns the belief in a lease that was granted by an answer to what was sent at that
// moment, and that is heard of now: with nothing left of it, if the answer took too long. The
// margin is the time that the leader needs to stop.
func Believe(sent, now time.Duration, g Grant, margin time.Duration) Belief {
	b := Belief{margin: margin}
	b.deadline = b.until(sent, min(g.Waited, now-sent), g.Lease)
	b.Left(now)
	return b
}

// until is the deadline by an answer to what was sent then. No answer is believed that says more
// than a lease can be.
func (b *Belief) until(sent, waited time.Duration, answer Lease) time.Duration {
	return Deadline(sent, waited, min(answer.ExpiresIn, answer.LeaseDuration, MaxLeaseDuration), b.margin)
}

// Renewed takes the answer to a renewal that was sent at that moment, unless the deadline has come
// meanwhile: what was over does not begin anew. It returns what is left.
func (b *Belief) Renewed(sent, now time.Duration, answer Lease) time.Duration {
	if b.Left(now) > 0 {
		b.deadline = max(b.deadline, b.until(sent, 0, answer))
	}
	return b.Left(now)
}

// Left is the time until the deadline; 0 once it has come or End was called, also if the clock
// should go back.
func (b *Belief) Left(now time.Duration) time.Duration {
	if b.over = b.over || now >= b.deadline; b.over {
		return 0
	}
	return b.deadline - now
}

// End ends the belief: the leader has stopped, or was told that it does not lead.
func (b *Belief) End() { b.over = true }

// Deadline is when the belief ends unless it is renewed before.
func (b *Belief) Deadline() time.Duration { return b.deadline }

// LeaseEnd is the earliest moment at which the lease can be over in the store: the deadline, and
// the margin that was taken off.
func (b *Belief) LeaseEnd() time.Duration { return b.deadline + b.margin }
