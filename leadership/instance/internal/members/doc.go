// Package members remembers which members an election has: at this instance and, from the sheets
// that instances send each other, at the others. It knows no clock and starts no goroutine: its
// owner locks it, passes the time in, and calls Tick once a second.
//
// # Who is authoritative for what
//
//	the member     that it is present, and which token it follows. Neither is checked
//	the instance   which of its callers are members. Its sheets repeat that
//	the view       the leader, its token and policy, as far as the instance knows. The registry
//	               has only the term that it noticed last, to detect changes
//	the store      all decisions. A quorum is a policy; it does not keep leaders apart
//
// # How a candidate becomes a member
//
//	it joins       until it leaves, or its ttl has passed. If it joins again at another instance,
//	               this one forgets it when it hears of that
//	a stream       while it is open
//	it waits       while it stands in line; it follows the token that its instance knows
//	it reads the   while its stream is open, or for 30 s after a page; it says how far it has
//	journal        applied it
//	it leads       while its term lasts
//
// A stream that has ended counts for another 5 s (Linger), because most readers come back at once.
// The line itself keeps a place for as long. If a candidate leaves the line, or the instance of a
// member ends, watchers are told only if the member has not come back after 5 s. A member in
// several ways, or at several instances, is one member, with the first of the roles leader,
// candidate, witness, worker and follower that it has anywhere.
//
// # Sheets
//
//	change   the changes at an instance since its last sheet; a second after the change. Appends
//	         to journals and changes of proposals are sent sooner, at most every 0.1 s
//	whole    all members of the instance, in pieces; every 15 s while it has members
//	bye      the instance ends: its members are forgotten at once
//	ask      on any of them: the instance has just begun to hear, send a whole one
//
// Sheets may be lost, repeated, or overtake each other. They are numbered: an old one is dropped,
// and the next whole sheet makes up for a lost one. The members of an instance that has not been
// heard of for 40 s (Stale) are forgotten.
//
// # Bounds
//
// At most leadership.MaxMembers members may join here, and as many candidates in line here are
// counted. 256 other instances are remembered, with 20,000 members each and 100,000 in all. Members
// beyond that are not counted; a join is refused.
package members
