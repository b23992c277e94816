// Package members remembers which members an election has: at this instance and, from the sheets
// that instances send each other, at the others. It knows no clock and starts no goroutine: its
// owner locks it, passes the time in, and calls Tick once a second.
//
// # Who is authoritative for what
//
//	the member     that it is there, and which token it follows. Nothing is checked
//	the instance   which of its callers are members. A sheet repeats what its instance knows
//	the view       who leads, under which token and policy, as far as the instance knows. Of that
//	               the registry has only the term that it noticed last, to tell what has changed
//	the store      all that counts. That a quorum is present is a policy; it does not keep
//	               leaders apart
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
// A stream that has ended counts for another 5 s (Linger): most readers come back at once. A place
// in line is kept as long by the line itself. That a candidate has left it, or that the instance of
// a member has ended, is told to watchers only if it has not come back after 5 s. A member that is
// there in several ways, or at several instances, is one member, with the first of the roles
// leader, candidate, witness, worker and follower that it has anywhere.
//
// # Sheets
//
//	change   what has changed at an instance since its last sheet; a second after it has
//	whole    all that it knows, in pieces; every 15 s while it has members
//	         appends to journals and changes of proposals are told in one, 0.1 s after another
//	         at the earliest
//	bye      the instance ends: its members are forgotten at once
//	ask      on any of them: the instance has just begun to hear, send a whole one
//
// Sheets may be lost, repeated, or overtake each other. They are numbered: an old one is dropped,
// and what a lost one has said comes with the next whole one. The members of an instance that has
// not been heard of for 40 s (Stale) are forgotten.
//
// # Bounds
//
// At most leadership.MaxMembers members join here, and so many candidates that stand in line here
// are counted. Of other instances 256 are remembered, with 20,000 members each and 100,000 in all.
// What is beyond that is not counted; a join is refused.
package members
