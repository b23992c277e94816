package leadership

import "time"

// Belief is what a leader may believe of one lease, on its own clock: it leads until a deadline.
// Only a successful answer moves the deadline, and never back. Once the belief has ended it stays
// so. The clock must be one that Deadline accepts.
type Belief struct {
	deadline time.Duration
	margin   time.Duration
	over     bool
}

// Believe returns the belief in a lease. The request left at sent, and its answer, the grant,
// arrived now. Nothing is left of the belief if the answer took too long. The margin is the time
// that the leader needs to stop.
func Believe(sent, now time.Duration, g Grant, margin time.Duration) Belief {
	b := Belief{margin: margin}
	b.deadline = b.until(sent, min(g.Waited, now-sent), g.Lease)
	b.Left(now)
	return b
}

// until returns the deadline by an answer to a request that left at sent. An answer that claims
// more than a lease can have is cut to that.
func (b *Belief) until(sent, waited time.Duration, answer Lease) time.Duration {
	return Deadline(sent, waited, min(answer.ExpiresIn, answer.LeaseDuration, MaxLeaseDuration), b.margin)
}

// Renewed takes the answer to a renewal that left at sent, unless the deadline has passed
// meanwhile: a belief that has ended does not begin anew. It returns the remaining time.
func (b *Belief) Renewed(sent, now time.Duration, answer Lease) time.Duration {
	if b.Left(now) > 0 {
		b.deadline = max(b.deadline, b.until(sent, 0, answer))
	}
	return b.Left(now)
}

// Left returns the time until the deadline; 0 from the deadline or a call of End on, even if the
// clock goes back.
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
