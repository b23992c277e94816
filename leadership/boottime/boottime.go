// Package boottime is a clock that no one can set and that does not stop while the machine is suspended.
//
// Whoever holds something for a time (a lease, an answer from a cache) must know how much of that time has gone by, whatever happened
// meanwhile. The wall clock may be set back, and the clock that Go calls monotonic stands still on a suspended machine: to it, what
// was fresh an hour ago is fresh still.
package boottime
