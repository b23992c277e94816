// Package line is the line in which candidates stand for one election, without anything around it: it has no goroutine, no lock, no clock and no
// store. Whoever drives it says what time it is, makes the attempts that it asks for, and tells it what was learnt and heard; so that an instance
// runs it (package queue, whose page explains the line), and a simulation runs the very same.
//
// Its methods are not to be called at the same time. Now is a reading of one clock that never goes back, the driver's; what is said of time counts
// on that clock.
package line
