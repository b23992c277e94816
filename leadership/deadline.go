package leadership

import "time"

// Drift is how much slower than the store's clock a leader's clock may run, as one part in so many:
// 0.1 %. A machine that keeps its time by NTP is within 500 parts in a million.
const Drift = 1000

// Deadline is the leader's half of the rules: the moment from which it must not believe that it
// leads, on its own clock. It was granted, or has renewed, its lease by a request that it sent at
// the moment sent, read before the request left. For the time waited the request stood in line
// (Grant.Waited), and left is what the reply says is left of the lease (Lease.ExpiresIn). The
// margin is the time that the leader needs to stop.
//
// The lease began when the request was sent and had waited, or later. So it ends left after that,
// or later; and a clock that is slow by no more than Drift shows no more than this when it does.
// What was waited is by the clock of a server, which may be fast by as much, so that both count
// there. Counted from the reply the deadline would be late by as long as the reply took, which is
// as long as a network, or a suspended machine, likes.
//
// The clock must be one that nobody sets, and that runs while the machine is suspended; see package
// boottime.
func Deadline(sent, waited, left, margin time.Duration) time.Duration {
	return sent + slow(slow(waited)+left) - margin
}

// slow is the least that a clock which is slow by Drift may show after d.
func slow(d time.Duration) time.Duration {
	if d == 0 {
		return 0
	}
	return d - d/Drift - 1
}
