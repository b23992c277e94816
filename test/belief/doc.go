// Package belief is a small model of ME-2, searched to its end: no candidate believes that it leads after its lease has ended, and no two
// believe it at once. What decides in it is the real thing: the rules leadership.Acquire, Renew, Release and Expire for the store, and
// leadership.Deadline for the candidates.
//
// # What can happen
//
// Time goes by in seconds of the store's clock; each candidate has a clock of its own, which shows more or less in each. Between two seconds
// anything happens in any order:
//
//   - A candidate reads its clock and sends a call. It hears the answer, whenever that is, or gives up. It does nothing for as long as it
//     likes, which is what a process that was stopped, or a machine that was suspended, looks like from outside.
//   - A call arrives at once, later, or never; and whatever was ever sent may arrive again, as often as it likes, long after its sender
//     has given up. An answer is heard at once, later, or never.
//   - An acquire that is refused stands in line, and is tried again at any time. The line's time counts as leadership.Grant.Waited.
//   - A leader stops its work and gives the lease back, or is killed, and may campaign again with another key.
//
// # Why the search ends
//
// There is no horizon. Rules and deadlines know differences of times only, so a state has ages and not instants in it, and each age has a
// value from which on it makes no difference: a lease is over, an answer too old to be believed in. Tokens matter as the newest and as older
// ones; keys as a candidate's present one and earlier ones; what was sent is a set, as what is in it stays. So there is a finite number
// of states, and all that can be reached in any time are visited.
package belief
