// Package notify passes events on to whoever listens in one process: watchers, streams, and the
// queues of candidates.
//
// # Who is authoritative for what
//
// The store's history is the truth; what a Hub hears is a hint that there is more of it. Events
// reach a Hub from the commits of its own process and from those of others, over Pub/Sub: at least
// once, of one election mostly in order, and sometimes not at all. A Watch nevertheless gets every
// event of its election once, in order and without a gap: what follows on what it has is passed on
// from memory, and what does not makes it read the history. A Feed does so for all elections.
//
//	own commits ------+           +--> Listener   woken: something may have happened
//	                  +--> Hub ---+--> Watch      every event of one election
//	other instances --+     |     +--> Feed       every event of all elections
//	                        |
//	                        +--------> History    what was missed
//
// # When the history is read
//
// Reads are shared: those who want the same at the same time make one.
//
//	a watch begins                       one read for each revision that watches begin with; none if somebody has read on to the end,
//	                                     and the hub was live since
//	an event follows on what is known    none
//	it does not                          one read; if it is not in the history, 10 at most, less and less often, and it is forgotten
//	the hub becomes live                 one read for each election that is watched, and one of all if there are feeds
//	the hub is not live                  the same, each view.Poll
//	the store fails                      one read a second for each election that is watched, and one of all each view.Poll
//	feeds begin                          one read of all; one more if the cursor lies further back than what is in memory
//	an election is heard of, with feeds  one read of all for its first event, unless that is its first ever
//	feeds, and there was news            one read of all within a minute
//	feeds, and there was none            one read of all each half hour
//
// Who publishes is believed if what they say follows: a Hub passes on what was made up if it has
// just the next revision. Everything else is looked up.
//
// # Cursors
//
// The events of one election have an order, and a Watch resumes from a revision. Those of different
// elections have none that anybody could tell at the time. A Feed therefore resumes from an instant
// of the store's clock, its cursor: every event that was committed up to then was passed on. Some
// that were committed later may have been passed on as well, and come again: whoever resumes drops
// what is not newer than what it has seen of an election.
//
// What lets a Feed say so is the mark of the journal that all feeds read. A look into the history
// at the store's time N finds everything that was committed before N, but for the difference
// between the clocks of the store's servers. So the mark moves on to N-5s, and stands beside each
// event that is entered from then on.
//
//	            from                     mark       N
//	------------|------------------------|----------|----> the store's time
//	 only       | all of it is in memory | most of it is: what was heard, and what was found
//	 in history |                        |
//
// # Slow listeners
//
// Nobody waits for anybody: a wake-up does not block, and whoever comes late finds all that
// happened since in the shared memory of the election or, if that has moved on, in the history. A
// Feed that is so late that the journal has moved on ends.
//
// # When events do not come
//
// A Hub that may be missing events (SetLive) says so: its watchers and feeds then look into the
// history from time to time. When events come again, all look once more. While a Hub is live and an
// event is lost all the same, a Watch finds it with the next event of its election, and a Feed in
// half an hour at the latest.
package hub
