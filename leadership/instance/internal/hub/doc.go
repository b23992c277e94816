// Package hub shares one process's knowledge of the elections: cached reads, watches, long polls
// and feeds. It also records the ends of leases that run out. Package view keeps the state and
// decides when to look again; the hub locks it, wakes waiting callers, and does what the view asks
// for.
//
// # Who is authoritative for what
//
// The store and its history are the truth; an event that a Hub is told is a hint that there is more
// in the history. Events reach a Hub from the commits of its own process, from those of others over
// Pub/Sub, and from looks into the outbox: at least once, mostly in order within one election, and
// sometimes not at all. A Watch nevertheless gets every event of its election once, in order and
// without a gap: an event that follows the last one is passed on from memory, and for any other the
// history is read. A Feed does the same for all elections.
//
//	own commits ------+           +--> Read      a cached lease
//	                  |           +--> Watch     every event of one election
//	other instances --+--> Hub ---+--> Feed      every event of all elections
//	                  |     |     +--> Wait      wakes a line of candidates
//	outbox -----------+     |
//	                        +--------> Store     reads, the history, and ends to record
//
// # What a reading promises
//
//   - It was true at some moment within its Age, and Age is at most Bound. Past the bound there is
//     an error, never old data.
//   - It never goes back. A read that begins after another has ended, after an event was heard, or
//     after a change by this instance was learnt, shows no older revision; a read with Known, the
//     revision that its reader has seen elsewhere, shows nothing older than that.
//   - It does not guess the effect of time. When the cached lease or the lock delay would end, the
//     store is asked: another instance may have renewed the lease, and renewals leave no event.
//
// That an election does not exist, or is deleted, is cached and bounded in the same way; absences
// take up to half of the room.
//
// A reading is a hint all the same: only the fencing token protects. Age is counted from before the
// store was asked, on a clock that runs while the machine is suspended; the remaining time of a
// lease is reduced by as much. While a read is in progress, callers that want the same wait for it;
// but once a newer revision is known no reader joins it any more, because the read may miss it.
//
// # Ends
//
// A lease that ends without a release leaves no trace by itself. The instance that granted or last
// renewed it therefore records its end, with the event "expired", shortly after a candidate in line
// would have asked. If it cannot announce that, the others find the event in the outbox. If it died
// together with the leader, another instance with a watcher finds the end, up to 6 minutes late,
// and one with a candidate at once. Ends that no instance looks after are found by the tick of a
// scheduler (service.Service.ExpireAll). Nothing depends on a look being in time: only the store
// decides whether a lease is over.
//
// # Reports
//
// A leader's report is part of its lease, and no event. A watch is told of a report (Listen) when
// this process learns of a new one: from the renewal, if the leader renews here, or from a read. No
// read is made for it, and a report that another follows within a second may not be told.
//
// # Members
//
// A watch may also report changes of members (Tell), which are no events either. The hub knows
// nothing of them: it wakes the watches of an election (MembersChanged), and they ask.
//
// # When the history is read
//
// Reads are shared: callers that want the same at the same time make one read.
//
//	a watch begins           one read for each revision that watches begin with; none if another
//	                         has read on to the end, and the hub was live since
//	an event follows         none
//	it does not              one read; if it is not in the history, 10 at most
//	the hub becomes live     one read for each watched election, and one of all if there are feeds
//	the hub is not live      the same, each view.Poll
//	the store fails          one read a second for each watched election, and one of all each Poll
//	feeds begin              one read of all; one more for a cursor further back than memory
//	an election is new       one read of all for its first event, unless that is its first ever
//	128k elections are known one read of all for the next event of each that has none in memory
//	feeds, and news          one read of all within a minute
//	feeds, and no news       one read of all each half hour
//
// An event is believed if it has the next revision: a Hub even passes on an invented one. All other
// events are looked up.
//
// # Cursors
//
// The events of one election have an order, and a Watch resumes from a revision. Those of different
// elections have none. A Feed therefore resumes from an instant of the store's clock, its cursor:
// every event that was committed up to then was passed on. Some that were committed later may have
// been passed on as well, and come again: a reader that resumes drops events that are not newer
// than what it has seen of an election.
//
// A Feed takes this instant from the mark of the journal that all feeds read. A look into the
// history at the store's time N finds everything that was committed before N, except for the
// difference between the clocks of the store's servers. So the mark moves on to N-5s, and is noted
// with each event that is entered from then on.
//
//	            from                     mark       N
//	------------|------------------------|----------|----> the store's time
//	 only       | all of it is in memory | most of it is: what was heard, and what was found
//	 in history |                        |
//
// # Slow readers
//
// A wake-up does not block. A slow watch finds the events since in the shared memory of the
// election or, if that no longer has them, in the history. A Feed so slow that the journal no
// longer has its next events ends with ErrSlow.
//
// # When events do not come
//
// While a Hub may be missing events (SetLive) it reads the history for its watches and feeds from
// time to time, and once more when events come again. If a Hub is live and an event is lost all the
// same, a Watch gets it with the next event of its election, and a Feed in half an hour at the
// latest.
package hub
