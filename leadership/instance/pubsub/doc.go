// Package pubsub carries events between the instances on one store, over Google Cloud Pub/Sub, and,
// over a topic of their own, messages about members.
//
//	instance A                Pub/Sub                           instances
//
//	        Publish     +-----------+    +----------------+    Run
//	outbox -----------> |   topic   | -> | subscription A | -> hear, live
//	                    |           |    +----------------+
//	                    |           |    +----------------+
//	                    |           | -> | subscription B | -> hear, live
//	                    +-----------+    +----------------+
//
// Each instance has a subscription of its own, so each hears every event, including its own.
// Nothing here decides anything: an event wakes readers, and the store is the truth.
//
// # Who is authoritative for what
//
//   - The store's outbox knows which events were announced: an event counts as published once
//     Publish has reported it acknowledged. Until then the outbox tries again.
//   - Pub/Sub keeps acknowledged messages until each subscription has delivered them, for up to 10
//     minutes.
//   - Run knows whether events can be heard, and says so with live.
//
// # Publishing
//
// One request carries up to 100 events of one election, in order, with the election as their
// ordering key. It is acknowledged as a whole. After an error no later event is sent; the next try
// begins with the first event that was not acknowledged. A request whose reply was lost may have
// been carried out and is sent again, so events come at least once. First deliveries of an election
// come in order if no caller sends an event before the previous one was accepted, and if all
// publish in one region: Pub/Sub orders a key only within a region. Instances in several regions
// therefore publish through the endpoint of one (Config.PublishEndpoint). While that region's
// Pub/Sub is out of reach, events wait in the outbox. Hearing needs no such endpoint.
//
// The library's Publisher is not used: it keeps a queue that outlives the caller's context, and
// refuses an ordering key after an error until that key is resumed. A request does neither.
//
// A message's data is a JSON document, an event as the REST API spells it; see document for how it
// may evolve. Its attributes election, type, fencingToken, revision and leaderId (left out if there
// is no leader) are for the filters of other subscribers.
//
// # Hearing
//
//	            subscribed, stream open, probe answered
//	+--------+ ------------------------------------------> +-------------+
//	|  deaf  |                 live(true)                  |    live     | --+ messages, probes
//	+--------+ <------------------------------------------ +-------------+ <-+
//	  |    ^    the stream ended, the subscription or its        live(false)
//	  +----+    topic is gone, or a probe was not answered
//	  backoff, subscribe again
//
// live(true) promises that every event which Pub/Sub accepts from now on is heard, or live(false)
// follows. Events accepted earlier may have been missed: a listener reads the store at each
// live(true), and relies on nothing after live(false).
//
// A break is noticed:
//
//   - at once, when the connection is closed, or the service ends the stream because the
//     subscription was deleted;
//   - at once, when the topic was deleted and this instance publishes;
//   - by pings, within Bound (12 s), where the service answers them: the stream is pinged every 4
//     s, and is given up if two pings in a row are not answered. So a cut cable and a stream that
//     hangs are noticed. The service answers pings; emulators do so from 0.8.32 on. A stream that
//     has answered none need not: an empty message that came before the first ping is no answer;
//   - by a probe: whenever no message has come for Config.Probe (8 s), Run asks for the
//     subscription on the connection of the stream, and waits half of that for the answer. While
//     pings are answered it asks only every fourth time, to detect a deleted topic or a lost right,
//     which pings do not show: these are noticed within LossBound, 36 s, and without pings within
//     12 s. While pings are answered, a probe that exceeds the quota or is not answered in time is
//     ignored.
//
// A process that is suspended, or gets no CPU, notices nothing meanwhile.
//
// A stream that ended is opened again at once, and after failures with growing pauses of up to
// Config.Probe, each time on a new subscription; the old one is deleted. On the old one a message
// in flight when the stream broke would come again after its acknowledgement deadline, 10 s or
// later, and later events of its election would wait for it although hearing is live. The
// service ends streams as a matter of routine, about every half hour: live(false) and live(true)
// then follow each other within moments.
//
// The library's Subscriber is not used either: it reopens streams by itself for ever and reports
// nothing, it orders messages only after the server has said that there is an order, and it ends
// only when all callbacks have.
//
// # Messages about members
//
// Messages carries texts of any kind, without an order, attributes or an outbox: a message that
// could not be published is not sent again. It hears as Bus does, by the same kind of session.
//
// # Subscriptions
//
// A subscription is created when hearing begins, and deleted when it ends. One whose instance was
// killed is a stray. Each subscription carries the label regent=instance and, as regent-heartbeat,
// the wall-clock time of its instance's last heartbeat (every half hour). Sweep deletes those
// without a heartbeat for two hours, and Pub/Sub itself those that were unused for a day. The
// heartbeat has no other use. An instance whose subscription was swept by mistake makes a new one.
//
// The emulator 0.8.20 cannot change labels: there Sweep takes the subscription of an instance that
// has run for two hours for a stray.
//
// # Costs
//
//	n events of one election   ⌈n/100⌉ Publish
//	hearing them               at most one Acknowledge for each answer of the stream
//	an instance at rest        one GetSubscription every 32 s (every 8 s where pings are not
//	                           answered), one UpdateSubscription in 30 min
//
// # Rights
//
// To publish: pubsub.topics.publish. To hear: pubsub.subscriptions.create, get, consume, update,
// delete and list in the project, and pubsub.topics.attachSubscription on the topic. The topic is
// created only on an emulator.
package pubsub
