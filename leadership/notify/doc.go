// Package notify passes events on to whoever listens in one process: watchers, and the queues of candidates.
//
// # Who is authoritative for what
//
// The store's history is the truth; what a Hub hears is a hint that there is more of it. Events reach a Hub from the commits of its own
// process and from those of others, over Pub/Sub: at least once, of one election mostly in order, and sometimes not at all. A Watch
// nevertheless gets every event of its election once, in order and without a gap: what follows on what it has is passed on from
// memory, and what does not makes it read the history.
//
//	own commits ------+           +--> Listener   woken: something may have happened
//	                  +--> Hub ---+--> Watch      every event of one election
//	other instances --+     |     +--> Feed       every event of all elections
//	                        |
//	                        +--------> History    what was missed
//
// # Cursors
//
// The events of one election have an order, and a Watch resumes from a revision. Those of different elections have none that anybody could
// tell at the time. A Feed therefore resumes from an instant of the store's clock, its cursor: every event that was committed up to then was
// passed on. Some that were committed later may have been passed on as well, and come again: whoever resumes drops what is not
// newer than what it has seen of an election.
//
// # Slow listeners
//
// Nobody waits for anybody: a wake-up is a channel of one, and whoever comes late finds all that happened since in the shared memory of the
// election or, if that has moved on, in the history.
//
// # When events do not come
//
// A Hub that may be missing events (SetLive) says so: its watchers then look into the history from time to time by themselves. When
// events come again, all look once more.
package notify
