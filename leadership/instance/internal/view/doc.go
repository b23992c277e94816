// Package view keeps one instance's knowledge of the elections, and decides when to look again.
//
// A View is told what the instance learns, and says what to do about it. It has no goroutine, no
// lock, no clock and no store: package hub drives it in a serving process, and a simulation drives
// the same code.
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
// The store is the truth. Of two answers, the one with the higher revision counts; within one
// revision the lease that ends later, for it was renewed, or a lease that is over, for it is not
// held again. The answer to a question that was asked after other knowledge arrived always counts:
// so an invented event does harm for one question only.
//
// An event names the leader, but not how long its lease lasts. Until the store is asked, the view
// therefore has a leader without a lease; it never invents one. If a leader goes on in a new epoch,
// or was deposed, its lease as known before still counts as promised.
//
// The events of a hand-over name the successor and its progress (Succession). Once the leader has
// yielded it no longer counts as leading (Leads), its lease ends within rule.YieldWindow, and news
// of earlier renewals are ignored.
//
// The view does not know whether an order bars a candidate. It counts the events after which a
// candidate may no longer be barred (Orders).
//
// # When to look again
//
// Each election has one next moment, the earliest of these. Next returns the election when that has
// come.
//
//	reason   moment                                        what to do
//	End      a lease that was granted or renewed here      Expire
//	         has run out; four leases later if the leader
//	         renews elsewhere, too
//	Watcher  a lease that is watched here, and renewed     Expire; up to 6 min later each time
//	         elsewhere, has run out                        that it was renewed, at its end if a
//	                                                       candidate waits as well
//	Missing  an event was heard, and not the one before    Look; 10 times, less and less often,
//	                                                       and then it counts as invented
//	Silence  not all events are heard, and the election    Look, each Poll
//	         is watched
//	Failed   the last look has failed                      Look, a second later
//
// While news come that another instance renews the lease (RenewedElsewhere), the moments of End and
// Watcher, and Open, are put off: to the end that was told, Open to a second before it, or to an
// eighth of a lease under 8 s. The news never make a moment earlier, never put it off for more than
// a lease, and count only for a known term. They are hints: readers are shown the store's answers.
// When they stop, the look comes at the end that was told last. RenewedHere returns the news that
// an instance tells the others.
//
// Without news, a watcher of a lease that is renewed elsewhere costs 14 looks in an hour, and hears
// of its end up to 6 min late if there is no event, because the instance that renewed it died
// together with the leader.
//
// An event that another process has left in the outbox is heard like any other, so the view looks
// because of Missing. A waiting candidate looks at Open, by an attempt of its own, which records
// the end as well.
package view
