// Package belief is a small model of ME-2, searched exhaustively: no candidate believes that it
// leads after its lease has ended, and no two believe it at once. The decisions in it are the real
// ones: the rules rule.Acquire, Renew, Release, Expire, Lapse, Retire, Delete, Configure,
// Unlock, Order and Judge for the store, and leadership.Deadline for the candidates.
//
// # What can happen
//
// Time passes in seconds of the store's clock; each of two to four candidates has a clock of its
// own, which may show more or less in a second. Between two seconds anything happens in any order:
//
//   - A candidate reads its clock and sends a call. It receives the answer at any time, or gives
//     up. It does nothing for any length of time, which is how a stopped process or a suspended
//     machine looks from outside.
//   - A call arrives at once, later, or never; and every call that was sent may arrive again, any
//     number of times, long after its sender has given up. An answer arrives at once, later, or
//     never.
//   - A leader stops its work and releases the lease, or is killed, and may campaign again with
//     another key.
//   - The store finds a lease over, and records its end.
//
// A model may have more, part by part, so that models stay small: see the fields of Model. A leader
// may believe in a lease that an operator, or a verdict, has ended until it would have ended by
// itself, and no other candidate is granted one until then; one that goes on under a new epoch may
// believe in its lease under the old token until it is told. With Commits a heartbeat may be
// committed after the end of the lease. Then it leaves the end where it was, as in all stores
// (rule.StartOf), and the service takes it back, at any time or never.
//
// With Commits a call that arrives again is decided and committed at one instant, except for a
// release. That loses no behaviour: a transaction commits only if the record is unchanged since its
// read, and then writes what it would write if it read only now. There are two exceptions. A
// release that read a lease while it lasted releases it even if it has ended since, so there is a
// step for that; a heartbeat that was decided in time and comes too late changes nothing.
//
// Not in the model: the store's guard (its one clock is right), renewals of several elections,
// leases of different durations, and changes of the configuration.
//
// Hand-overs, ballots, challenges and leases that stand on others are played at random in package
// rule, on the same rules and with an observer of their own.
//
// # Why the search ends
//
// There is no horizon. Rules and deadlines know only differences of times, so a state has ages and
// no instants, and each age has a value from which on it makes no difference: a lease and its lock
// delay are over, an answer is too old to be believed. Tokens matter as the newest and as older
// ones; keys as a candidate's present one and earlier ones; the calls that were sent are a set,
// because they stay. So the number of states is finite, and all that can be reached in any time are
// visited. The search drops none, and confuses none by its hash: each state is stored whole, in
// twenty bytes. States are one only if they differ by nothing but a permutation of candidates with
// equal clocks.
//
// # How long it takes
//
// On one core of a small machine some 150,000 states a second, with 20 steps from each, and 60
// bytes for a state. See Quick and Night.
package belief
