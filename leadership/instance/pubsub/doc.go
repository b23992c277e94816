// Package pubsub carries events from the instance that made a change to all the others, over Google Cloud Pub/Sub.
//
//	instance A                      Pub/Sub                           instances
//
//	              Publish       +-----------+    +----------------+    Run
//	outbox, relay ----------->  |   topic   | -> | subscription A | -> hear, live
//	                            |           |    +----------------+
//	                            |           |    +----------------+
//	                            |           | -> | subscription B | -> hear, live
//	                            +-----------+    +----------------+
//
// Each instance has a subscription of its own, so each hears every event, its own included. Nothing here decides anything: what is heard
// wakes, and the store is the truth.
//
// # Who is authoritative for what
//
//   - The store's outbox knows what was announced: an event counts as published once Publish has said so, and the outbox asks again until then.
//   - Pub/Sub keeps what it acknowledged until each instance's subscription has delivered it, for up to 10 minutes.
//   - Run knows whether anything can be heard, and says so with live.
//
// # Publishing
//
// One request carries events of one election, in order, with the election as their ordering key, and is acknowledged as a whole. After an error
// nothing that follows is sent; whoever tries again begins with the first event that was not acknowledged. So of one election
// the first deliveries come in order, as long as one caller at a time publishes it, from one region. A request whose reply was lost
// may have been carried out, and is sent again: events come at least once.
//
// The library's Publisher is not used. It keeps a queue of its own, which outlives the caller's context, and refuses an ordering key after an
// error until it is resumed; a request has neither.
//
// A message's data is a JSON document, an event as the REST API spells it; see document for how it may evolve. Its attributes election, type,
// fencingToken, revision and leaderId (left out if nobody leads) are for other subscribers' filters.
//
// # Hearing
//
//	            subscribed, stream open, probe answered
//	+--------+ ------------------------------------------> +-------------+
//	|  deaf  |                 live(true)                  |    live     | --+ messages, pongs, probes
//	+--------+ <------------------------------------------ +-------------+ <-+
//	  |    ^    the stream ended, the subscription or its        live(false)
//	  +----+    topic is gone, or a probe was not answered
//	  backoff, subscribe again
//
// live(true) promises: every event that Pub/Sub accepts from now on is heard, or live(false) follows. What was accepted before may have been
// missed, so whoever listens looks into the store at each live(true), and relies on nothing after live(false).
//
// A break is noticed:
//
//   - at once, when the connection is closed, or the service ends the stream because the subscription was deleted;
//   - at once, when the topic was deleted and this instance publishes;
//   - by a probe, when nothing comes: it asks for the subscription, on the connection of the stream, whenever no message has come for
//     Config.Probe (8 s), and has half of that to be answered. So a cut cable, a deleted topic and a lost right are noticed within Bound, 12 s;
//   - within three times Config.Probe, when the connection is well and only the stream hangs: one that has answered pings has to go on
//     doing so. The service answers them; emulators do so from 0.8.32 on.
//
// A process that is suspended, or gets no CPU, notices nothing meanwhile.
//
// A stream that ended is opened again at once, and after failures with growing pauses of up to Config.Probe, each time on a new subscription; the
// one before is deleted. On the old one a message that was on its way when the stream broke would come again after the deadline of its
// acknowledgement, 10 s, or later, and what follows in the same election would wait for it although hearing is live. What was announced
// meanwhile is not heard: live(true) makes all who listen look into the store. The service ends streams as a matter of routine, every half
// hour or so; live(false) and live(true) follow each other within moments then.
//
// The library's Subscriber is not used either: it opens streams again by itself for ever and tells nobody, it hears in order only once
// the server has said that there is an order, and it ends when all callbacks have.
//
// # Subscriptions
//
// A subscription is created when hearing begins, and deleted when it has ended. One whose instance was killed is a stray: it carries the label
// regent=instance and, as regent-heartbeat, the time at which its instance last said that it lives (each half hour); Sweep deletes those that have
// been silent for two hours, and Pub/Sub itself those that nobody has used for a day. That time is a wall clock's, and decides nothing else. An
// instance whose subscription was swept by mistake makes a new one.
//
// The emulator 0.8.20 cannot change labels: there Sweep takes any instance for a stray that has run for two hours.
//
// # Costs
//
//	n events of one election   ⌈n/100⌉ Publish
//	hearing them               at most one Acknowledge for each answer of the stream, fewer under load
//	an instance at rest        one GetSubscription every 8 s, one UpdateSubscription every half hour
//
// # Rights
//
// To publish: pubsub.topics.publish. To hear: pubsub.subscriptions.create, get, consume, update, delete and list in the project, and
// pubsub.topics.attachSubscription on the topic. The topic is created only on an emulator.
package pubsub
