// Package cache stands in front of the reads of elections, so that the store is asked once for what many want to know.
//
// # What it promises
//
//   - A reading was true at some moment within its Age, and Age is at most Bound. Past the bound there is an error, never old data.
//   - It never goes back. A read that begins after another has ended, after an event was heard, or after a change by this instance was
//     learnt, shows no older revision; one that names what its reader has seen elsewhere (Known) shows nothing older than that.
//   - It does not guess what time may have changed. When the lease that an entry shows would end, or the lock delay, the store is asked: another
//     instance may have renewed it, and of that there is no event.
//
// A reading is a hint all the same: what it shows may have changed since. Only the fencing token protects.
//
// # How an entry comes and goes
//
//	        a read of the store comes back          learnt, and newer: what this instance wrote
//	none --------------------------------> entry ------------------------------------------------> entry
//	  ^                                      |
//	  +--------------------------------------+
//	     heard: an event of a later revision; or it was over, and room was needed
//
// Only a read makes an entry where there is none. While one is under way, those who want the same wait for it; but once anything newer is
// learnt or heard nobody joins it any more, for it may have begun before that, and if it comes back with less it makes no entry.
//
// Age is counted from before the store was asked, on a clock that runs while the machine is suspended. What is left of a lease is brought
// down by as much, so that it holds when the answer leaves.
package cache
