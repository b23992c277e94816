package leadership

import "time"

// Drift is how much slower than the store's clock a leader's clock may run: one part in 1000, or
// 0.1 %. A machine that keeps its time by NTP is within 500 parts in a million.
const Drift = 1000

// Deadline returns the moment, on the leader's own clock, from which the leader must not believe
// that it leads. sent is when the request that granted or renewed the lease left, read before it
// left. waited is how long the request stood in line (Grant.Waited), left is the remaining time of
// the lease in the reply (Lease.ExpiresIn), and margin is the time that the leader needs to stop.
//
// The lease began at sent+waited at the earliest, so it ends at sent+waited+left at the earliest. A
// clock that is slow by at most Drift shows at least the deadline, without the margin, by then.
// waited was measured by a server's clock, which may be fast by as much, so Drift counts twice
// there. A deadline counted from the arrival of the reply would be too late by the time that the
// reply took, which on a slow network or a suspended machine may be any time.
//
// The clock must be one that cannot be set and that runs while the machine is suspended; see
// package boottime.
func Deadline(sent, waited, left, margin time.Duration) time.Duration {
	return sent + slow(slow(waited)+left) - margin
}

// slow returns the least time that a clock which is slow by Drift may show after d.
func slow(d time.Duration) time.Duration {
	if d == 0 {
		return 0
	}
	return d - d/Drift - 1
}
