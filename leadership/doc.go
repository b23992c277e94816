// Package leadership is Regent's protocol: how many candidates agree on one leader at a time.
//
// An election is a named contest for one leadership. The candidate that wins it is its leader and
// holds a lease: the right to lead for leaseDuration from its last heartbeat. A heartbeat is the
// grant or a renewal. Every grant raises the election's fencing token by one. The lease makes it
// rare that a former leader still acts; the token, checked where it writes, makes it harmless.
//
// # Who is authoritative for what
//
//   - The store alone knows which candidate leads. Its clock alone decides whether a lease has
//     ended: no process's wall clock is ever compared with anything.
//   - The rules alone decide: package rule. They are pure: a Snapshot and a command go in, a Change
//     or an error comes out. A Store runs them inside one transaction. Simulators, checkers and
//     fuzzers run the very same functions.
//   - The leader decides when it stops: at its own deadline, which lies before the end that the
//     store knows.
//
// # Where it stands
//
// Imports run as the arrows do:
//
//	cmd/regent          one binary: serves, and is typed by agents and operators
//	  |     |
//	  |     v
//	  |   httpapi       doors: REST, with who may do what, and beside it
//	  |     |           httpapi/kubernetes (Leases), httpapi/mcp (language models)
//	  |     |           and httpapi/dashboard (people)
//	  v     v
//	leadership/instance one serving process, with the guarded service, and the agents' side:
//	  |                 leadership/client, leadership/fence, which need leadership alone
//	  v
//	leadership/service  the protocol over a Store and a Journal
//	  |
//	  v
//	leadership/rule     the record, its codec, and the rules  <--  store: memory, file, firestore,
//	  |                                                            spanner: a Store each
//	  v
//	leadership          this package: names, requests, answers and errors; imports the standard
//	                    library alone
//
// # States
//
//	             acquire: token+1, "acquired"
//	+--------+ --------------------------------> +------+ --+ renew; acquire with the same key:
//	| vacant |                                   | held |   | same token, and no new revision
//	+--------+ <-------------------------------- +------+ <-+ unless the lease changed ("updated")
//	  |    ^     release: "released"                |
//	  |    |     the lease ran out: "expired"       |
//	  |    |                                        |
//	  |    | configure: "recreated"                 |
//	  v    |                                        |
//	+---------+                                     |
//	| deleted | <-----------------------------------+
//	+---------+  delete: "deleted"; with force while held
//	             vacant for too long (retireAfter): "deleted"
//
// A deleted election is a tombstone. Its record stays, so its token and its revision never go back.
// It has no leader until an operator configures it anew, or acquires it in the same change
// (AcquireRequest.Restore).
//
// # Identity
//
// A candidate is known by its CandidateID, and one incarnation of it by its Key: a secret of 32
// bytes, of which the store keeps the SHA-256. Renew and release need the key and the token. Every
// mutation is idempotent by (election, candidate, key): a caller that lost a reply asks again and
// gets what the first call would have got. The same candidate with another key is another
// incarnation, and waits like any other candidate.
//
// A key is spent once its release was sent. A release whose reply was lost may still be under way,
// and would end a lease that the same key was granted after it. So repeat the release until it is
// answered, or take a new key. (Once it was answered, the next grant has a higher token, and a late
// copy of the release names a lease that has ended.) An acquire that arrives after that costs the
// others one lease duration, and no more.
//
// # Repeats
//
// A copy of a call may come late, even when its caller has long moved on. So a call that changes
// something names what it changes: the token of a term, the revision that it was decided on, the id
// of an order, the end of a wait. Then a copy is recognized or refused, and changes nothing: at
// once, after its effect was undone, in a later term or epoch, and after a restore. Exceptions: An
// acquire grants anew once its lease was released (see "Identity"), and its metadata replaces other
// metadata. A request for an approval that comes after the approval asks once more. A ready counts
// for each hand-over of its term to the same candidate. A leave ends a later membership of the same
// id until that member joins again. A proposal whose ttl is over is open anew, and so is an effect
// that was done and is no longer kept. Package store/storetest has the table of all verbs.
//
// A copy of a call that was refused is decided as the first one was, and may succeed then. So a
// release, a step-down and a yield are a leader's last word: once it has sent one it must not act
// under that token again, nor under one that the same lease gets in a new epoch, whatever the
// answer. If that was a refusal (NotReady, LimitExceeded), it repeats that later.
//
// # Time
//
// With S the store's now in the deciding transaction, H the instant at which the last heartbeat was
// committed, D the lease duration, B the instant EndsBy if there is one, L the lock delay, and G
// the store's guard (for the clocks of different servers of one store; zero where there is one
// clock):
//
//	H                a lease starts when its heartbeat commits, not when it was asked for
//	E = min(H+D, B)  its end. A renewal counts if its own commit came before the end. A late one
//	                 never revives a lease, even if the lease was not granted again
//	S >= E+G         it has ended, and the next one may be granted
//	S >= E+L+G       so, too, if it ended without a release
//
// EndsBy is an instant past which no renewal extends the lease, with a reason (Record.EndsBecause):
// a maximum term, a missing approval, an eviction, a hand-over. It is never earlier than the end
// that the leader was already promised, unless the leader agrees, by its release or its yield. A
// leader needs no logic for it: the remaining time that it is told obeys EndsBy already.
//
// Replies carry the time that remains (Lease.ExpiresIn), never an instant to compare a local clock
// with. A leader must stop at its Deadline: sent + ExpiresIn×0.999 − margin. It reads sent before
// the request leaves, on a clock that runs while the machine is suspended. Only a successful reply
// extends the deadline. Package client does that for agents in Go, and `regent run` for any
// command.
//
// An operator who deletes a held election ends the lease in the store. Its leader learns of it at
// its next renewal; until the lease would have ended by itself no other is granted.
//
// Unlock is the one exception. With it an operator ends a wait at once that cannot be ended
// otherwise, and acknowledges until when two leaders may believe that they lead. The next grant
// has a higher token, so fencing still protects all writes.
//
// # Orders, limits and reports
//
// A person can always overrule a leader, and a policy can limit it. All of it acts through EndsBy:
// the earliest of these ends of the term, but never earlier than what the leader was promised.
//
//	maxTerm    that long after the grant
//	approval   that long after enough principals approved; if a term ends earlier, the next has
//	           the rest of that time
//	stuck      that long after the last progress that the leader reported
//	evicted, drained, handOver
//	           the end already promised, by an operator's order
//	handOver   that long after the leader has named its successor
//	parent     the end of the lease that this one stands on, as last read
//
// An end counts for one term. A limit that Configure removes from the policy is lifted at once; a
// limit that it adds counts from the next grant.
//
// An operator's order has a reason and, if it stands for a time, an end. A standing order is an
// Override: assign (only this candidate is granted), pause (none is), ban (this candidate is not,
// or no candidate that calls as this verified principal). It bars grants; it never takes a lease
// away. It outlives the term, a deletion, and a move to another store. Evict, pause with drain, and
// assign to another candidate also end the present term, at the end already promised. Resume and
// lift take that back while the term lasts, except for an eviction. The same order again writes
// nothing. An eviction that may be repeated must name the fencing token: without one it applies to
// the leader of the moment.
//
// A halt bars grants in all elections that match a pattern, even in those that do not exist yet.
// An instance reads the halts at most five seconds before a grant, or gives the grant back if the
// election is halted by then. Leaders go on.
//
// Approvals are counted in rounds. A round ends when as many principals as the policy needs have
// approved. The shortest time that one of them gave counts. A repeated order is counted once: it
// names the revision that it was decided on, so that the same words at a later one are a new order.
// If a term ends for want of an approval, no lease is granted until there is one, under the last
// fencing token. With newEpoch the same leader goes on under the next token: work begun before is
// stale. Its renewal with the old token is refused with the reason EPOCH; it acquires again.
//
// A leader that obeys its deadline releases a while before the end. A release with half of a lease
// or less left before an end for want of an approval, or of progress, has the consequence of that
// end: the wait for an approval, or the cooldown.
//
// A renewal may carry a Report. Its counters never fall within a term. The rule Renew judges it by
// the policy. A leader that trips (over its budget, too many errors, too many bad verdicts) loses
// its lease in that very change, with the event "deposed". It may not hear of it, so no lease is
// granted before the end that it was promised. Where the policy only notifies, there is an event,
// once in a term. A leader without progress needs no trip: it cannot renew beyond its end, and is
// deposed then.
//
// SeriesPolicy limits many terms together: how many may fail, and how much they may use. The change
// that ends the term which exceeds it parks the election, with an event: no lease is granted until
// there is an approval, under the last fencing token.
//
// The policy's cooldown makes a trip a circuit breaker, one for each candidate:
//
//	+--------------------+        trip: for the cooldown         +-------------------+
//	| closed             | ------------------------------------> | open              |
//	| leads as any other |                                       | banned            |
//	+--------------------+                     trip: for twice   +-------------------+
//	          ^                                as long, 24 h       ^               |
//	          |                                at most             |               |
//	          |      has led for         +-------------------+     |               |
//	          |      one cooldown        | probation         | ----+               |
//	          +------------------------- | leases of 10 s    | <-------------------+
//	                                     +-------------------+    the ban is over
//
// The ban is for the candidate or, with cooldownOf principal, also for all candidates that call as
// the principal noted by the grant; they then share the probation. The breaker also closes once an
// operator lifts the ban, or if the candidate is not granted for a day after the ban. While eight
// bans stand no other candidate is granted either, for there is no room to note a ninth. A longer
// lease after a probation begins with the leader's next report or acquire. Explain says why a
// candidate does not lead. Acquire refuses by the same reasons.
//
// # Who should lead
//
// Without a policy the first candidate that asks is granted. With a BallotPolicy a Strategy decides
// which of two candidates is the better one, by their Candidacy; Rank has the table. A candidate
// without a capability that the policy requires is refused at once, with NotEligible. A witness is
// never granted.
//
// Candidates of several instances meet in a ballot, in the record and only while no candidate
// leads. The first call of a vacant election opens it and writes a bid, by a quiet change. With a
// window of 300 ms, and candidates of the priorities 5, 9, 7 and 1:
//
//	ms   0  priority 5 bids: the ballot is open           told to ask again at 300 (BALLOT)
//	    20  priority 9 bids                               at 300 (BALLOT)
//	    30  priority 7 bids; one is better                at 500 (OUTRANKED)
//	    40  priority 1 writes nothing: three are better   at 900 (OUTRANKED)
//	   300  9 asks, and is granted; had it crashed:
//	   500  7 is granted, or, had that crashed, too:
//	   700  5 is granted, and so on
//
// So the best leads at the end of the window, and each better bidder that has crashed costs 200 ms
// (BidTurn). A candidate with two better live bids need not write its own, because its turn comes
// by the bids of the others; so the writes of a ballot grow with the logarithm of the instances. A
// bid is void 4 s after the window: its instance writes it anew, or withdraws it. The record keeps
// 16. A new policy, a standing order, a deletion, and a move of the election end a ballot; the next
// call opens another. The event of the grant shows the values of each bid, so that a reader can
// repeat the result with Rank, which also says how a candidate could steer a draw. An instance bids
// only for the best candidate of its own line.
//
// Where the policy says preempt, a better candidate need not wait for the leader to stop: its
// challenge lets the term end, at the end that the leader was promised and never earlier, and the
// ballot after that decides. It must be better by the strategy; a lower id alone is not enough. The
// leader counts with its Candidacy at the grant, and is safe until minTerm after the grant. The
// challenge ends if the challenger goes away, if an order bars it, or if the policy changes.
//
// A quorum lets a candidate be granted only while enough members of an electorate are present. Each
// bid names those that its instance has heard of lately; the union of the live bids counts. If it
// is complete only after the window, the best bidder is granted, and the others wait for it for a
// second. A challenge needs a quorum at its own instance. It is no part of safety.
//
// # Seats
//
// An election with Config.Seats has up to that many leaders: each grant is of one seat, which is an
// election of its own. The policy and the standing orders of the whole election apply to each seat.
// A seat notes the newest revision of the whole that it was told, and refuses a grant decided on an
// older one; a change of the whole is answered once all seats were told. If Seats becomes less, the
// terms at the seats beyond it run out. One ballot in the whole's record decides for all free seats
// but those that an operator has assigned. It is drawn by the name and the next token of the whole:
// with k seats free, the best k bidders are granted one a window after it became free, the others
// in turn after the last of these grants.
//
// # Succession
//
// A leader that wants to stop hands over in two phases:
//
//	leader                          successor
//	  handOver to: the term ends,     loads what it needs, while the leader goes on
//	    within 30 s by default
//	                                  ready: its key is noted, and no other incarnation takes part
//	  stops its work
//	  yield: it has stopped, and
//	    nothing undoes that
//	                                  acquire: "released" and "acquired" in one commit
//
// If the successor waits at the instance that gets the hand-over, its key is noted by then. No
// reader sees a vacancy, and no other candidate slips in. From the yield on, the leader's
// renewals are refused with LeaseLost, its token is stale, and each candidate is told LeaseHeld but
// the successor with its key. A successor that an order bars is refused as it would be at any time;
// so is one without the quorum that the policy asks for.
//
// Nothing waits for a process that has died. Without a yield the term ends at the end of the
// hand-over, or earlier by itself. After a yield the successor has YieldWindow, but no longer than
// the lease had; then the lease ends as any other, and the next in line is granted. The successor
// of an assign order, and a better candidate whose challenge ends the term, may say ready, too, and
// the leader may yield to them. An order comes first, then a challenge, then the leader's choice.
// An order that bars the successor takes the hand-over back.
//
// A yield is the one way in which a lease gets shorter than was promised, because its leader gives
// the promise up. So a caller that has sent one must not act as the leader again, whatever the
// answer: see "Repeats". A release after it changes nothing.
//
// With Config.Promotion a new leader does not serve until it says so (SayServing); checkToken for a
// write refuses its token with NotReady until then.
//
// # Leases that stand on others
//
// A lease may stand on another lease. With Config.LeadersOf, or if the candidate asks for it (Via),
// that is another lease of the same candidate; in a delegated election it is the parent's lease,
// whichever candidate holds it. LeadersOf counts only elections that an operator has configured,
// because a candidate can make others.
//
// A grant needs the parent's lease by a strong read before its commit, and by another one after it.
// If the parent has ended in between, the grant is given back, and the candidate is refused. A
// grant whose reply was lost counts as a renewal when it is asked for again.
//
// The lease ends at the latest when the parent's was promised to end; each renewal reads the parent
// again, and then moves its own end on. If the parent ends earlier (released, yielded, deleted,
// unlocked, deposed), the lease keeps the end that its leader was promised; its next renewal moves
// that on by one lease at most, and no later one does. Another term of the parent is another
// parent. A new epoch of the same leader is not: the lease goes on under the parent's new token.
//
// The parent may be in another service, a peer, which answers with the time that remains; that
// counts from before the call, by this store's clock, less Drift and the guard. A peer does not
// tell a new epoch from an end.
//
// Delegate makes an election for a part of the leader's task, as "task.part". Depth, number of
// children and budget are limited, copied down, and counted in the parent's record before the child
// is made. If a process dies in between, the next call makes the child. A child that exists is
// never counted again.
//
// # Outcomes
//
// There are three, not two: done, refused, and unknown (the reply was lost). Unknown is an error of
// its own, OutcomeUnknown. For a leader LeaseLost means stop now. StoreUnavailable, RecordTooNew
// and OutcomeUnknown mean try again until your own deadline.
//
// # Events
//
// A change that a reader may want to hear of raises the election's revision by one and leaves one
// Event with that revision, written in the same transaction. Revisions are contiguous from 1,
// except for a gap where an election came from another store or was raised after a backup was
// restored. A plain renewal leaves no event. Each term has exactly one event that begins it
// ("acquired") and one that ends it ("released", "expired", "deposed", "deleted" or "unlocked"); a
// new epoch ("epoch") ends one and begins the next. A hand-over adds "handingOver", "ready" and
// "yielded", of the term that goes on until "released"; then there are "serving" and "delegated".
// An event may say who made the change, why, and more in detail. Readers ignore unknown types.
package leadership
