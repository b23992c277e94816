// Package relay sees to it that every committed event is announced on a topic: at least once, of one election for the first time in the order
// of revisions, none without a commit, whatever is killed.
//
// # Who is authoritative for what
//
// The outbox, which is the store's list of events that are not marked as announced, knows what is still to be done. An event stands in
// it from its commit, in the same transaction, until somebody marks it. Whatever a process forgets, drops or takes to its grave is
// found there by another.
//
//	Service --Publish--> announcer ------+
//	   |                  |  ^           |
//	commit             mark  read        +--> Topic ~~~> subscription of each instance --Heard--> Relay
//	   v                  v  |           |
//	 [       outbox        ] -----> relay+
//
// The announcer, in every instance, announces what its own process has committed, right after the commit. It gives up soon: after a
// failure it pauses, and leaves to the relay what is committed meanwhile.
//
// The relay publishes what was left behind: what stood in the outbox in two looks, 2 s apart. For that it leads the election
// "regent.relay", so that one instance relays at a time. That saves duplicates, and is needed for nothing else: where that lease cannot be
// had by anybody, all relay.
//
// # Order
//
// Call an event out once the topic has accepted a copy of it, no matter whose, and whether or not anybody learnt of it. Nobody sends revision
// k+1 of an election unless
//
//  1. k+1 is 1; or
//  2. k stands before it in the same call of Topic.Publish, which accepts no event before those in front of it; or
//  3. it knows that k is out.
//
// Hence no copy of k+1 is ever accepted before k is out, and the first deliveries of an election are in order: if some copy were the
// first to break this, its sender would have had one of the three reasons, each of which says that k was out before. A reason once true
// stays true, for what is out is out for ever. So it does not matter how long a sender was paused between learning and sending, at
// which event of a batch it was killed, whether a copy that was given up for lost arrives after all, or that several send the same.
//
// A Relay knows that k is out if the topic acknowledged k, or any later revision, to it; if it heard k, or any later one, from the topic
// (what is accepted obeys the order, so all before it is out too: one number per election is all there is to remember); or if, in a read
// of the outbox which has a later revision than k, k is missing: k was committed before that one, so it has been marked. It is marked
// only by somebody who knew that it is out.
//
// It therefore publishes revision n directly only if it knows of n-1, which is so as long as one instance makes an election's changes, or
// hears of the others' in time. Otherwise (another instance has committed n-1 and perhaps died before it published; or a Service has told
// of two changes in the wrong order, from two goroutines) it reads the outbox of that election, which n is in and all that is to come before
// it, and publishes all of that.
//
// # Completeness
//
// An event leaves the outbox only when it is out. As long as some instance runs, and store and topic answer now and then, it looks, and
// publishes what it finds. An election whose events cannot be published, or read (RecordCorrupt), holds up no other. What a store
// forgets because its history is over (Store.Events) is forgotten though it was not announced: keep history for longer than a topic may
// be gone.
//
// Nothing else is ever published: events are told of after their commit, or read from the store.
//
// # Cost
//
// While all is well: one Publish per change, one MarkAnnounced per 100 ms or 500 events, and one read of an empty outbox per instance and
// interval. An idle deployment writes nothing.
//
// # Failpoints
//
// In a build with the tag failpoints (see package failpoint) a process can be killed at these points:
//
//	relay:committed       an event is committed, and nothing was done about it
//	relay:published       the announcer has the topic's acknowledgement; nothing is marked
//	relay:mid-batch       more than 100 events of one election are published; some are acknowledged, and the next not sent
//	relay:marked          the announcer's events are marked
//	relay:left            events were left behind; nobody leads yet
//	relay:leading         this instance leads, and has published nothing yet
//	relay:left-published  the events of one election that were left behind are acknowledged; of this look nothing is marked, and of the
//	                      other elections not all is published
//	relay:left-marked     they are marked, and the lease is not released
package relay
