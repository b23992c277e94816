// Package outbox announces every committed event on a topic: at least once, the events of one
// election for the first time in the order of their revisions, and none without a commit, whichever
// process is killed.
//
// # Who is authoritative for what
//
// The outbox is the store's list of events that are not marked as announced. An event enters it in
// the transaction that commits it, and stays until an instance marks it. It alone says which events
// are still to be announced: those that a process forgot, or had when it died, another process
// finds there.
//
//	Service --Publish--> announcer ----+
//	   |                  ^     |      |
//	commit              read   mark    +--> Topic ~~> subscription of each instance --Heard--+
//	   v                  |     v      |                                                     |
//	 [        outbox       ] <--> sweep + <--------------------------------------------------+
//	                                |
//	                                +--Found--> watchers of this process
//
// There is an announcer and a sweep in every instance. No instance is chosen for anything, so none
// can keep another from announcing.
//
// The announcer publishes what its own process has committed, right after the commit. If that
// fails, the election is left to the sweep of the same instance, which tries after 1 s and then in
// growing pauses of up to 15 s.
//
// The sweep looks into the outbox every 15 s, counted from look to look, however long the topic
// takes to fail. It publishes the elections that its own process has left, and those with an event
// that it saw 10 s ago or more: the process that committed such an event is dead, or cannot reach
// the topic. Whatever a look finds it also hands to Found, so an instance tells its own watchers
// within 19 s of a commit, and the time that a look takes, though the topic is out of reach. While
// it is, and more than 500 events wait, a look reads those first ones and, once it has read all, of
// the others what was committed since the look before.
//
// An instance knows that it cannot announce (CannotAnnounce) from a call of the topic that fails
// until one succeeds. Once another instance has announced what it left, it publishes the event that
// failed again, in the same pauses: no other call shows that the topic can be reached. An instance
// that cannot look into the outbox says the same until it can. It also knows that others leave
// events behind (OthersLeave), from those that it sweeps for them.
//
// # Order
//
// Call an event out once the topic has accepted a copy of it, from any instance, even if no
// instance has learnt of that. An instance sends revision k+1 of an election only if
//
//  1. k+1 is 1; or
//  2. k stands before it in the same call of Topic.Publish, which accepts no event before those in
//     front of it; or
//  3. it knows that k is out.
//
// So the topic never accepts a copy of k+1 before k is out. Take the first copy that would break
// this: its sender had one of the three reasons, and each says that k was out before. A reason
// stays true, because an event that is out stays out. Therefore order needs no lease, no lock
// between instances and no time limit: any number of instances may announce and sweep the same
// election at the same moment, be paused between learning and sending, be killed in the middle of a
// batch, or have a copy accepted late that they gave up for lost. They make duplicates, and nothing
// else.
//
// An instance knows that k is out if
//
//   - the topic acknowledged k, or a later revision, to it; or
//   - it heard k, or a later revision, from the topic. Accepted events obey the order, so one
//     number per election is all there is to remember; or
//   - it read the outbox of the election, and the read has a later revision than k and not k. Then
//     k was marked, and events are marked only by an instance that has published them. A read that
//     is not of one moment may miss k; so one that begins beyond what is known to be out is made
//     twice. If it still misses k, k comes late. It is not lost: an instance marks k without
//     publishing it only after an acknowledgement of k itself.
//
// The announcer publishes revision n by itself if it knows of n-1. That is so as long as one
// instance makes an election's changes, or hears of the others' in time. Otherwise it does what a
// sweep does with an election: it reads the election's outbox and publishes all of it from the
// front.
//
// # Completeness
//
// An event leaves the outbox only when it is out. While an instance runs and reaches store and
// topic, it sees each event at one of its looks, and sweeps it. An election that cannot be
// published or read (RecordCorrupt) holds up no other. A message on the topic that is no event of
// this store makes announcements late, and loses none: a sweep leaves out only what was
// acknowledged to its own process.
//
// A store forgets events whose history is over (Store.Events), announced or not: keep history
// longer than a topic may be out of reach.
//
// # Time and cost
//
// While all is well a change costs one Publish and its share of one MarkAnnounced per 100 ms or 500
// events. Each instance reads the outbox every 15 s, or 10 s after a look that found something. An
// idle deployment writes nothing.
//
// Another instance announces what a dead or cut off instance left within 32 s (18.75 s until it
// sees the event, 12.5 s until it looks again), in the mean after 19 s if one instance is left and
// after 13 s if eight are.
//
// # Duplicates
//
// There are none while instances live and the topic answers within 10 s. An instance that could not
// reach the topic may publish one event again when it can. An event that is left behind is
// published by several instances only if they sweep the same election within the time that it takes
// to publish and mark it: before it publishes an election, a sweep reads it again, drops what was
// marked meanwhile, and marks at once. With eight instances and 20 ms for each call that
// makes 1 duplicate in 100 events that were left behind, and 13 if all have started at the same
// moment (TestFewDuplicatesWhenManyInstancesSweep).
//
// # Failpoints
//
// In a build with the tag failpoints (see package failpoint) a process can be killed here:
//
//	outbox:committed       an event is committed, and nothing was done about it
//	outbox:published       the announcer has the topic's acknowledgement; nothing is marked
//	outbox:marked          the announcer's events are marked
//	outbox:left            a sweep found events that were left behind, and has published none
//	outbox:left-published  such events of one election are acknowledged, not marked
//	outbox:left-marked     they are marked; of other elections not all is published
//	outbox:mid-batch       100 events of one election are published and marked, the next not sent
package outbox
