package leadership

import "time"

// Belief tells a leader until when it may believe that it holds one lease, by its own clock. Only a
// successful answer moves the deadline, and only forward. Once ended, a belief stays ended. The
// clock must be one that Deadline accepts.
type Belief struct {
	deadline time.Duration
	margin   time.Duration
	over     bool
}

// Believe returns the belief in the lease of a grant. The request left at sent, and the answer
// arrived at now. The belief has already ended if the answer took too long. margin is the time that
// the leader needs to stop.
func Believe(sent, now time.Duration, g Grant, margin time.Duration) Belief {
	b := Belief{margin: margin}
	b.deadline = b.until(sent, min(g.Waited, now-sent), g.Lease)
	b.Left(now)
	return b
}

// until returns the deadline that follows from an answer to a request that left at sent. If the
// answer claims more time than a lease can have, the longest lease counts.
func (b *Belief) until(sent, waited time.Duration, answer Lease) time.Duration {
	return Deadline(sent, waited, min(answer.ExpiresIn, answer.LeaseDuration, MaxLeaseDuration), b.margin)
}

// Renewed extends the belief by the answer to a renewal that left at sent, unless the deadline has
// passed: a late answer does not revive an ended belief. It returns the remaining time.
func (b *Belief) Renewed(sent, now time.Duration, answer Lease) time.Duration {
	if b.Left(now) > 0 {
		b.deadline = max(b.deadline, b.until(sent, 0, answer))
	}
	return b.Left(now)
}

// Left returns the time until the deadline. Once it has returned 0, or after End, it returns 0 for
// good, even if the clock goes back.
func (b *Belief) Left(now time.Duration) time.Duration {
	if b.over = b.over || now >= b.deadline; b.over {
		return 0
	}
	return b.deadline - now
}

// End ends the belief: the leader has stopped, or was told that it does not lead.
func (b *Belief) End() { b.over = true }

// Deadline returns when the belief ends unless it is renewed before.
func (b *Belief) Deadline() time.Duration { return b.deadline }

// LeaseEnd returns the earliest moment at which the lease can have ended in the store: the deadline
// plus the margin.
func (b *Belief) LeaseEnd() time.Duration { return b.deadline + b.margin }
