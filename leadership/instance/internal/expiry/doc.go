// Package expiry announces leases that run out with nobody there.
//
// A lease that ends without a release leaves no trace by itself: only its time is up. A candidate that comes finds it over and takes it; but
// where none comes nobody would hear that the leader has gone. So the instance that granted or last renewed a lease keeps its end in
// mind and looks after it: Expire records that the lease ran out, with the event "expired", if it did.
//
//	          Learn: granted, renewed
//	nothing -------------------------> known <--------+ Learn: renewed (no more than a number changes)
//	  ^  ^                             |   | ---------+
//	  |  |  Learn: vacant;             |   |
//	  |  |  Heard: ended, or led anew  |   | the end, and a little time for others
//	  |  +-----------------------------+   v
//	  +--------------------------------- a look -----> once more later, if the store did not answer
//	     it is recorded; or another instance has
//	     renewed it, which then knows the end
//
// An instance keeps in mind only what went through it, so that a lease that is held costs the others nothing. What no instance keeps in
// mind, because the one that did was stopped, is found by the tick of a scheduler (leadership.Service.ExpireAll).
//
// Nothing depends on a look being in time: whether a lease is over is the store's to say.
package expiry
