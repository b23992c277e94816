// Package leadership is Regent's protocol: how many candidates agree on one leader at a time.
//
// An election is a named contest for one leadership. A candidate that wins it is its leader and
// holds a lease: the right to lead for leaseDuration, counted from its last heartbeat (the grant,
// or a renewal). Every grant raises the election's fencing token by one. The lease makes it rare
// that somebody acts who should not; the token, checked where the write happens, makes it harmless.
//
// # Who is authoritative for what
//
//   - The store, and only the store, knows who leads. Its clock alone decides whether a lease is
//     over: no process's wall clock is ever compared with anything.
//   - The rules in this package (Acquire, Renew, Release, Expire, Lapse, Check, Configure, Delete,
//     Carry, Raise) are the only place that decides. They are pure: a Snapshot and a command go in,
//     a Change or an error comes out. A Store runs them inside one transaction; simulators,
//     checkers and fuzzers run the very same functions.
//   - The leader itself decides when to stop: at its own deadline, which lies before the end that
//     the store knows.
//
// # States
//
//	             acquire: token+1, "acquired"
//	+--------+ --------------------------------> +------+ --+ renew; acquire with the same key:
//	| vacant |                                   | held |   | same token, and no new revision
//	+--------+ <-------------------------------- +------+ <-+ unless the lease itself changed ("updated")
//	  |    ^     release: "released"                |
//	  |    |     the lease ran out: "expired"       |
//	  |    |                                        |
//	  |    | configure: "recreated"                 |
//	  v    |                                        |
//	+---------+                                     |
//	| deleted | <-----------------------------------+
//	+---------+  delete: "deleted"; with force while held
//
// A deleted election is a tombstone: its record stays, so that its token and its revision never go
// back. Nobody leads it until an operator configures it anew.
//
// # Identity
//
// A candidate is known by its CandidateID, and one incarnation of it by its Key, a secret of 32
// bytes of which the store keeps the SHA-256. Renew and release need the key and the token. Every
// mutation is idempotent by (election, candidate, key): whoever has lost a reply asks again and
// gets what the first call would have got. The same candidate with another key is somebody else,
// and waits like everyone else.
//
// A key is spent once its release was sent. A release whose reply was lost may still be under way,
// and would end a lease that the same key was promised after it: so repeat the release until it is
// answered, or take a new key. (Once it was answered, the next grant has a higher token, and the
// late release names a lease that is no more.) An acquire that is delayed until after the release
// grants a lease that nobody knows of; it costs the others one lease duration, and no more.
//
// # Time
//
// With S the store's now in the deciding transaction, H the instant at which the last heartbeat was
// committed, D the lease duration and G the store's guard (for the clocks of different servers of
// one store; zero where there is one clock):
//
//	H            a lease starts when its heartbeat commits, not when it was asked for
//	H+D          its end. A renewal counts if its own commit came before the end; a late one never revives a lease,
//	             even when no one has taken it
//	S >= H+D+G   it is over, and somebody else may be granted the next one
//	H+D+L+G      that is, with a lock delay L, if it ended without a release
//
// Replies carry the time that remains (Lease.ExpiresIn), never an instant to compare a local clock
// with. A leader must stop at its Deadline: sent + ExpiresIn×0.999 − margin, where sent was read
// before the request left, on a clock that runs while the machine is suspended. Only a successful
// reply extends it. Package client does that for agents in Go, and `regent run` for any command.
//
// An operator who deletes a held election ends the lease in the store, but not in the head of its
// leader. Nobody is granted a lease before the old one would have ended by itself.
//
// # Outcomes
//
// There are three, not two: done, refused, and unknown (the reply was lost). Unknown is an error of
// its own, OutcomeUnknown. For a leader LeaseLost means stop now; StoreUnavailable and
// OutcomeUnknown mean try again until your own deadline.
//
// # Events
//
// Each change that anyone may want to hear of raises the election's revision by one and leaves one
// Event with that revision, written in the same transaction. Revisions are contiguous from 1, but
// for a gap where an election came from another store, or was raised after a backup was restored. A
// plain renewal leaves none. Each term has exactly one event that begins it ("acquired") and one
// that ends it ("released", "expired" or "deleted").
package leadership
