// Package simulation runs elections for years in minutes: many candidates, several instances and
// one store, in one goroutine's time, with everything that can go wrong on the way, drawn from a
// seed. The same seed gives the same run, to the nanosecond, so that one that failed can be looked
// at.
//
// # Real parts and models
//
// Real, and the very code that serves: the rules and the service over them (packages rule and
// service), what an instance knows of an election and when it looks again (cached reads and the
// ends of leases), the line in which candidates stand (both by package instancetest), what a leader
// may believe (leadership.Belief), and the fence where its writes arrive (package fence). They have
// no clock and no goroutine of their own.
//
// The rest is modelled: clocks, the network, the store's transactions, how instances hear of
// events, and the pace at which agents ask, which is like that of package client. The store is one
// of three kinds:
//
//	one step     a transaction reads and commits in one instant, as the local store's do; there is
//	             one clock
//	stamped      the same, but the commit has a later instant than the read, by clocks that differ
//	             by up to the guard, as in Spanner
//	optimistic   a transaction reads, decides, and commits if no other came between, else it
//	             begins anew; a renewal is one guarded write, which learns its commit time
//	             afterwards; clocks differ by up to the guard, as in Firestore
//
// # What goes wrong
//
// Messages are lost, late by up to minutes, doubled, and overtake each other. Agents stop for as
// long as they like, crash, and come back as another incarnation; their clocks are slow by up to
// the drift that is allowed for, or fast without a limit, and leap ahead. Instances stop, crash
// with all lines in them, and come back; they do not hear of events for a while, or hear of some
// twice. A transaction is aborted, or its outcome is unknown. The relay dies between publishing and
// marking. The store's clock leaps ahead (then ME-2 cannot hold, and is not checked). An operator
// changes the configuration, deletes elections while they are held, brings them back, and unlocks
// them (then two may believe, if the operator has acknowledged that). Operators assign, evict,
// pause, ban, approve and begin new epochs, verifiers judge, and leaders report: some are stuck,
// and some are over their budget. Leaders hand over, to successors that come, die, or are other
// incarnations by then; leases stand on others, by via and by delegation. Which of these happen in
// a run, and how often, is drawn for each run: a run in which everything happens at once hides as
// much as it shows.
//
// # What is checked
//
// At every commit, every grant that is heard of, and every renewal: ME-1, ME-2, FT, ID; at every
// reading that an instance shows: BS; at the end, when the faults have been over for a while: LV
// and EV, that no grant was against an order that stands, and that the history is whole. A run can
// be written down as a checker.Recording, for the checkers of other tests to look at as well.
//
// It is a simulation of events, not of machines: what goes wrong inside of a store, an operating
// system or the Go runtime is looked for by the runs of real processes (package faults) and by
// crash images (package crash).
package simulation
