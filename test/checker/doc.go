// Package checker holds recorded histories to what Regent promises of its announcements and of its cached reads.
//
//	EV   every committed change is announced, at least once, in order, without a gap; nothing else is
//	BS   a cached read was true at some moment within its stated age, and never goes back for one reader
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
