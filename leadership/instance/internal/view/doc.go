// Package view is what one instance knows of the elections, and when it has to look again.
//
// A View takes what the instance learns, and says what to do about it. It has no goroutine, no
// lock, no clock and no store: package hub drives it in a process that serves, and a simulation
// drives the very same.
//
//	Learn      the store's word: a read, a grant, a renewal   \                 / Fresh    cached reads
//	Refused    the same, to a candidate that may not lead yet  \   +--------+  /  After    watches
//	Heard      an event, of this instance or another            >--|  View  |-<   Open     the line
//	SetLive    whether all events are heard                    /   +--------+  \  Next     what to look for
//	Looked     what a look into the history has found         /                 \
//	Expired    what became of a lease whose end was recorded /
//
// # Which knowledge counts
//
// The store is the truth. Of two things that it said, the one of the higher revision counts; within
// one revision the lease that ends later, for it was renewed, and one that is over, for it is not
// held again. An answer to a question that was asked after something was learnt or heard counts in
// any case: so an event that somebody made up harms for one question only.
//
// An event says who leads, and nothing of how long. Until the store is asked, the view therefore
// has a leader without a lease; it never makes one up.
//
// # When to look again
//
// Of each election there is one next moment, the earliest of these. Next returns the election when
// it has come.
//
//	reason    moment                                                   what to do
//	End       a lease that was granted or renewed here has run out     Expire
//	Watcher   one that was renewed elsewhere, and is watched, has      Expire; later each time that it
//	          run out                                                  was renewed, up to 6 min
//	Missing   an event was heard, and what comes before it was not     Look; 10 times at most, less and
//	                                                                   less often
//	Silence   events cannot be heard, and the election is watched      Look, each Poll
//	Failed    the last look has failed                                 Look, a second later
//
// A candidate that waits looks at Open, by an attempt of its own, which records the end as well.
package view
