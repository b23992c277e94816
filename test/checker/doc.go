// Package checker holds recorded histories to what Regent promises.
//
//	ME1     for each election the intervals of two tokens never overlap, by the store's clock
//	ME2     nobody believes that it leads after its lease has ended
//	FT      fencing tokens strictly increase, and no write with an old one is let in
//	EV      every committed change is announced, at least once, in order, without a gap; nothing else is
//	BS      a cached read was true at some moment within its stated age, and never goes back for one reader
//	ID      the same call again does what once would have done, and what was refused was not done
//	LV      faults over, some willing candidate leads in time; with none, nothing changes hands
//	RC      what was acknowledged is in the history that is read at the end
//	Linear  the rules themselves, run one after the other in some order, give exactly these answers and this history
//	Free    the same by the answers alone, for short recordings
//
// All runs them, but for Free. Picture and Timeline draw what happened.
//
// # What it goes by
//
// The truth is the store's history, read when all was over. Everything else is what callers saw: when they asked and when they were answered,
// on one clock for the whole recording, and what they were told. No server's clock is believed in.
//
// # Benefit of the doubt
//
// Nobody outside the store knows when a change was committed, only that it was between the call and its answer, or at any time at all if the answer
// was lost. A checker accuses only if the history is wrong for every moment that is possible. It misses what could have been right, and
// what it reports was wrong.
//
// The functions are pure: a Recording goes in, a Report comes out, whether a test has recorded it from real processes or a simulator made it
// up. A Recording can be written down and read again, so that a run that failed can be looked at, and checked by other code.
package checker
