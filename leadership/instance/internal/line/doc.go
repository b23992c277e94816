// Package line lets candidates stand in line for an election, so that ten thousand of them cost
// the store one attempt at a change of leader, and nothing while they wait.
//
// # The line
//
// In each instance there is one line for each election that candidates wait for. A candidate joins
// at the end; only the head asks the store.
//
//	joins --> [ dee ] [ cy ] [     ] [ bob ] --> asks the store --> leads
//	            end            |       head
//	                           a place without a caller, kept for 5 s: skipped
//
// The head is the best place by the election's policy, as the store has last told it: by default,
// and until that is known, the first that came. Between instances the store decides: their heads
// ask at about the same time, and one of them is first, or the best of them wins a ballot.
//
// What a candidate said in its newest call counts. The best place is searched for when it goes or
// the policy changes; one that joins is only compared with it. Behind all others, whatever the
// strategy, come candidates that lack a required capability, as far as is known, and then
// witnesses. Such a candidate is asked for once when it joins, so that the store can tell it. A
// witness is asked for only if no candidate can be, and only if the policy has a quorum or is not
// known.
//
// A place belongs to a candidate and its key. A candidate that asks again with the same key,
// because a wait is over or a connection was cut, finds its old place if it comes within 5 s; two
// calls that wait at the same time stand in one place and get one answer. A call without a key has
// no place to come back to. A call whose client has disconnected is never granted a lease.
//
// # A ballot
//
// Where the policy asks for a ballot, an attempt in a vacant election is a bid. Its refusal says
// when the candidate's turn comes, and the line asks for its best place at just that time. It asks
// at once, with a bid that takes the place of the former:
//
//   - when a better candidate joins,
//   - when the candidate that has bid has gone, or says something else of itself,
//   - when a member of the electorate joins for which the ballot waits.
//
// For seats there is one ballot, in the election that has them. If several seats are free, the
// candidates behind the best place bid with it, one for each further seat. Their bids are not
// withdrawn; they become void by themselves.
//
// Otherwise an instance has one bid. If a candidate that goes was the last, its bid is withdrawn by
// a call of its own; if only its wait is over, once its place is forfeited. A wait that ends during
// a ballot is refused with what the store said to the line's best candidate.
//
// # A better candidate than the leader
//
// Where the policy lets better candidates preempt the leader, the store is asked once in a term for
// each candidate that becomes the best of the line, and once more when another's challenge is taken
// back: no sooner than the leader's shortest term is over, and not while the leader is challenged.
// If the challenger goes, the next best place takes the challenge over or takes it back, and if
// there is none a call of its own does.
//
// # A hand-over
//
// While the leader has yielded, as far as is known, the line asks for the successor at once,
// wherever it stands, whatever the strategy says, and also if it comes only then. It asks for no
// other candidate until the lease ends. The store refuses a successor with another key than the one
// that said it was ready; that place is not asked for again in this term. If the successor is gone,
// the line goes on at the end of the lease, as after any other.
//
// While events may be missed, so may be that of the yield. Then a line in which the named successor
// stands, with a key of its own, asks the store for it every half a second: for a minute after it
// has heard of the hand-over, and for another after the successor is ready, but not after the end
// that the hand-over sets. So a yield without news is noticed within half a second, where it takes
// a poll otherwise, and a hand-over costs 240 attempts more at most, at one instance.
//
// # A parent without a leader
//
// The lease of an election that was delegated stands on that of its parent. If the parent has no
// leader, no candidate is asked for until an event says that it has one, to which the line listens
// (Parent, Attend), or for 1, 2, 4 ... 30 s.
//
// # Orders
//
// The store refuses a candidate because of an order, or of the policy after a trip, with a Cause.
// Then the store is not asked for the candidates that it concerns until the time that it states, or
// until an event of an order of that election:
//
//	BANNED    this candidate, in whatever place: it stands aside, and the next one is asked for
//	ASSIGNED  all candidates but one, which is asked for wherever it stands
//	PAUSED    all
//	HALTED    all, until an event of the halts
//	APPROVAL  all; no time is stated, so the head asks once a minute
//
// Such a candidate keeps its place and its wait. While events may be missed, the head asks after a
// poll all the same, and a candidate that stands aside after half a minute. A wait that is over is
// refused with the reason that counts for the candidate.
//
// # A leader's own call
//
// A leader that has lost a reply asks again with the same key. It does not stand in line for its
// own lease:
//
//   - A call in the name of the candidate that is known to lead goes to the store directly.
//   - A place whose attempt has an unknown outcome is asked for before its turn, as soon as its
//     candidate is back, until an attempt for that place is answered.
//   - When a candidate that stands in line turns out to lead, by a refusal or an event, it is asked
//     for before its turn: once for each lease, for it may be another incarnation.
//
// Such a call costs one attempt; it is answered after it, or after the one that is under way. While
// events are missed (the hub is not live) it may take a poll more until the leader is known.
//
// # Who is authoritative for what
//
// The store decides who leads. A line only decides when to ask, and for which candidate; when it
// asks too early it is refused, and when it asks too late the election stands vacant for as long.
// It reads from the instance's view (package view) what is known of the election, and when asking
// may help. A candidate whose wait is over is told the lease as the store described it; if only an
// event has told of a change since, it is told the leader's name and no lease.
//
// All times are counted on the instance's own clock, from the moment when an answer has arrived:
// too late by the time that it took, and never too early.
//
// # The runner
//
// A Line has no goroutine and no clock. Its runner drives it, one goroutine that begins with the
// first caller and ends with the last place; a simulation drives the very same Line.
//
//	a first caller                           a grant: the head leaves the line
//	     |                                   a refusal: it stays
//	     v                                   no answer: it asks again in 0.2 s, 0.4 s, ... 5 s
//	+--------+ ------------------------------------------------> +---------+
//	| asking |                                                   | waiting | --> over (line empty)
//	+--------+ <------------------------------------------------ +---------+
//	             the lease should be over     + 0 to 100 ms
//	             the leader has gone          + 0 to 10 ms; nothing if the store said so here
//	             the same, but expired        + the lock delay, and 0 to 10 ms
//	             the same, but deposed        + what it was promised, the same, and 0 to 10 ms
//	             the turn in a ballot         nothing
//	             a better bid in a ballot     nothing
//	             a better candidate than the  nothing; in a term of the shortest length,
//	             leader, perhaps              at its end
//	             an order's event             + 0 to 10 ms, once a lease may be had
//	             an order's time is over      + 0 to 100 ms
//	             deleted                      + 0 to 10 ms
//	             another leads                + 0.5 to 1 s, to learn the end: no lease is shorter
//	             yielded, to one that is      nothing
//	             here
//	             the parent has a leader      + 0 to 10 ms
//	             configured                   + 0 to 1 s
//	             the hub is not live          5 s after the store was last heard of, and 0.5 s
//	                                          where the named successor stands
//	             the hub is live (anew)       + 0 to 1 s, for something may have been missed
//
// The times that are added keep the heads of different instances apart. A lease that is renewed
// through this instance moves the moment with every renewal, so that the store hears nothing from
// the line. One that is renewed through another is looked at when it would have ended: once in a
// lease, or never while news of the renewals come from the other instance (see package view).
//
// # What becomes of an attempt
//
// A candidate that the store refuses as not eligible is answered at once, and no other is.
//
// An attempt that has begun is finished, and its end is its caller's answer, also if the caller's
// wait is over meanwhile. Attempts for one place use one key, so that one whose outcome is unknown
// is repeated without harm; until that is settled it is not put off.
//
// A candidate that came without a key gets one from the queue, and learns it with the grant. If it
// goes before it could be told, the queue is the only one to know the key, and releases the lease:
// at once or, if it was unknown whether there was one, when the next in line is refused for it. A
// lease with a key of the candidate's own is never released by the queue: the candidate may be
// asking for it again right now, and a key is spent once its release was sent.
//
// A lease counts from its commit, and a leader counts it from its call. Grant.Waited closes the
// gap: the attempt was sent so much later than the call came.
package line
