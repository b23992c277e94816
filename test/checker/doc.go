// Package checker compares recorded histories with what Regent promises.
//
//	ME1     for each election the intervals of two tokens never overlap, by the store's clock
//	ME2     no candidate believes that it leads after its lease has ended
//	FT      fencing tokens strictly increase, and no write with an old one is admitted
//	EV      every committed change is announced, at least once, in order, without a gap;
//	        nothing else is
//	BS      a cached read was true at some moment within its stated age, and never goes back
//	        for one reader
//	ID      repeating a call does what once would have done, and what was refused was not done
//	LV      with faults over, some willing candidate leads in time; with none, leadership does
//	        not change
//	Told    no answer describes a lease that never was, or is not in the history at the end
//	Own     a leader is not kept waiting for its own lease
//	OV      no lease is granted against an operator's order
//	CH      the best candidate is chosen, with the members that have to be present
//	EF      an effect is begun by one leader, and once it is done it stays so
//	PR      a proposal is decided once, and by no former leader
//	SE      an election with seats has no more leaders than seats, and a halt is obeyed
//	Linear  the rules themselves, run one after the other in some order, give exactly these
//	        answers and this history
//
// All runs them.
//
// # What it goes by
//
// The truth is the store's history, read at the end. Everything else is what callers saw: when they
// asked, when they were answered, on one clock for the whole recording, and what they were told. No
// server's clock is trusted.
//
// # Benefit of the doubt
//
// Outside the store one does not know when a change was committed, only that it was between the
// call and its answer, or at any later time if the answer was lost. A checker reports a violation
// only if the history is wrong for every possible moment. It misses what could have been right;
// what it reports was wrong.
//
// The functions are pure: a Recording goes in, a Report comes out, whether a test has recorded it
// from real processes or a simulation has made it.
package checker
