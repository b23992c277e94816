// Package pubsubfence keeps the messages of former leaders out of a Pub/Sub subscriber.
//
// A leader stamps each message with its election and its fencing token, as two attributes:
//
//	election       planner
//	fencingToken   34
//
// A Fence wraps the subscriber's handler. A message with a token that a later leader has overtaken
// is acknowledged and not handled, because a former leader's command must not be delivered again.
// So a message that was published late, or delivered late, does no harm once the next leader's
// first message has arrived.
//
// That also drops commands that a leader published while it led, if they are delivered after the
// next leader's first one: Pub/Sub keeps no order by itself. Publish with an ordering key for each
// resource, to a subscription with message ordering, so that they come first. If no command may be
// lost, let Config.Refused publish those with TokenStale elsewhere, for the present leader to
// decide on, and call their Nack if that has failed.
//
// A message without a valid stamp, or of another election, is not handled and not acknowledged:
// Pub/Sub delivers it again, and in the end to the subscription's dead-letter topic. Set one. The
// same holds for a message whose mark could not be raised, because the Marks have failed.
//
// # Limits
//
// The comparison is one step and the handler's own write is another: a message of leader 33 that
// was admitted, and then delays, writes after one of leader 34. If the handler writes to a
// database, compare the mark of FromContext once more in the transaction of that write, by a
// package beside this one. The Fence then saves the transactions of messages that are known to be
// late.
//
// Without Marks a Fence remembers in memory. A process that has just started knows no leader, and
// two processes that receive from one subscription know different ones: give both Marks that they
// share.
package pubsubfence
