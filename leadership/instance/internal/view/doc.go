// Package view is what one instance knows of the elections, and when it has to look again.
//
// A View takes what the instance learns, and says what to do about it. It has no goroutine, no
// lock, no clock and no store: package hub drives it in a process that serves, and a simulation
// drives the very same.
//
//	Learn    what the store has said  --+            +--> Fresh    cached reads
//	Refused  ... to a candidate       --+            +--> After    watches and long polls
//	Heard    an event                 --+--> View ---+--> Open     the line of candidates
//	SetLive  are all events heard?    --+            +--> Next     what to look at, and why
//	Looked   events from the history  --+            +--> RenewedHere    news for the others
//	Expired  the end of a lease       --+            +--> Term     members, of held elections
//	RenewedElsewhere  others' news    --+            +--> Head     members, streams of journals
//	Appended  a journal has grown     --+
//
// # Which knowledge counts
//
// The store is the truth. Of two things that it said, the one of the higher revision counts; within
// one revision the lease that ends later, for it was renewed, and one that is over, for it is not
// held again. An answer to a question that was asked after something was learnt or heard counts in
// any case: so an event that was made up harms for one question only.
//
// An event says who leads, and nothing of how long. Until the store is asked, the view therefore
// has a leader without a lease; it never makes one up. What was known before is what was promised
// to a leader that goes on in a new epoch, and to one that was deposed.
//
// The events of a hand-over name the successor, and say how far it has come (Succession). Once the
// leader has yielded it does not count as leading any more (Leads), its lease ends within
// rule.YieldWindow, and news of renewals that were sent before count no more.
//
// Whether an order bars a candidate the view does not know. It counts the events after which one
// may no longer be barred (Orders).
//
// # When to look again
//
// Of each election there is one next moment, the earliest of these. Next returns the election when
// it has come.
//
//	reason   moment                                        what to do
//	End      a lease that was granted or renewed here      Expire
//	         has run out; four leases later if the leader
//	         renews elsewhere, too
//	Watcher  one that is watched here, and renewed         Expire; up to 6 min later each time
//	         elsewhere, has run out                        that it was renewed, at its end if a
//	                                                       candidate waits as well
//	Missing  an event was heard, and not the one before    Look; 10 times, less and less often,
//	                                                       and then it counts as made up
//	Silence  not all events are heard, and the election    Look, each Poll
//	         is watched
//	Failed   the last look has failed                      Look, a second later
//
// While news come that another instance renews the lease (RenewedElsewhere), the moments of End and
// Watcher, and Open, are put off: to the end that was told, Open to a second before it, or to an
// eighth of a lease under 8 s. The news never make anything earlier, never put it off for more than
// a lease, and count for a term that is known only. They are hints: readers are shown what the
// store has said. When they stop, the look comes at the end that was told last. RenewedHere is what
// an instance tells the others.
//
// Without news, a watcher of a lease that is renewed elsewhere costs 14 looks in an hour, and is
// told of its end up to 6 min late if no event tells: if the instance that renewed it died together
// with the leader.
//
// An event that another process has left behind in the outbox is heard like any other, and so it is
// Missing that makes the view look. A candidate that waits looks at Open, by an attempt of its own,
// which records the end as well.
package view
