// Package boottime is a clock that cannot be set and that does not stop while the machine is
// suspended.
//
// A holder of something that expires (a lease, a cached answer) must know how much time has passed,
// whatever happened meanwhile. The wall clock may be set back, and Go's monotonic clock stands
// still while the machine is suspended: what it calls fresh may be an hour old.
package boottime
