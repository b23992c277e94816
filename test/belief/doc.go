// Package belief is a small model of ME-2, searched to its end: no candidate believes that it leads
// after its lease has ended, and no two believe it at once. What decides in it is the real thing:
// the rules leadership.Acquire, Renew, Release, Expire, Lapse, Delete and Configure for the store,
// and leadership.Deadline for the candidates.
//
// # What can happen
//
// Time goes by in seconds of the store's clock; each of two to four candidates has a clock of its
// own, which shows more or less in each. Between two seconds anything happens in any order:
//
//   - A candidate reads its clock and sends a call. It hears the answer, whenever that is, or gives
//     up. It does nothing for as long as it likes, which is what a process that was stopped, or a
//     machine that was suspended, looks like from outside.
//   - A call arrives at once, later, or never; and whatever was ever sent may arrive again, as
//     often as it likes, long after its sender has given up. An answer is heard at once, later, or
//     never.
//   - A leader stops its work and gives the lease back, or is killed, and may campaign again with
//     another key.
//   - The store looks after a lease that is over, and records its end.
//
// A model may have more, each for itself, so that models stay small:
//
//   - Wait: an acquire that is refused stands in line, and is tried again at any time. The line's
//     time counts as leadership.Grant.Waited.
//   - Delay: the election has a lock delay. It never changes.
//   - Operator: an operator deletes the election, by force or unless it is held, and brings it back,
//     at any time and as often as they like. A leader may believe in a lease that was ended by force
//     until it would have ended by itself; no other candidate is granted one until then.
//   - Commits: a transaction reads the record, and commits later, or never; or it is aborted, as it
//     is when another has changed the record since, and reads again. Its caller may have stopped waiting for it any
//     longer, and its reply may be lost. A heartbeat may so be committed after the end of the lease.
//     It then leaves the end where it was, as the stores for Firestore and Spanner have it
//     (startOf), and the service takes it back, at any time or never.
//
// With Commits a call that arrives again is decided and committed at one instant, but for a
// release. That leaves nothing out: a transaction commits only if the record is as it has read it,
// and what it writes is then what it would write if it read only now. There are two exceptions. A
// release that has read a lease while it lasted gives it back even when it has ended since, so
// there is a step for that; a heartbeat that was decided in time and comes too late changes
// nothing.
//
// What is not in it: the store's guard (its one clock is right), renewals of several elections,
// leases of different durations, and that a configuration changes.
//
// # Why the search ends
//
// There is no horizon. Rules and deadlines know differences of times only, so a state has ages and
// not instants in it, and each age has a value from which on it makes no difference: a lease and
// its lock delay are over, an answer too old to be believed in. Tokens matter as the newest and as
// older ones; keys as a candidate's present one and earlier ones; what was sent is a set, as what
// is in it stays. So there is a finite number of states, and all that can be reached in any time
// are visited. None is forgotten, and none is taken for another by its hash: a state is kept whole,
// in twenty bytes. Only states that differ by nothing but who is who, among candidates with like
// clocks, are one.
//
// # How long it takes
//
// On one core of a small machine some 200,000 states a second, with 20 steps from each, and 40
// bytes for a state. See Quick and Night.
package belief
