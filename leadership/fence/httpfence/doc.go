// Package httpfence keeps the commands of former leaders out of a service that takes them over HTTP.
//
// A leader says with each request who it is, in two headers. Transport sets them, and does not send at all once the lease is over:
//
//	Regent-Election: planner
//	Regent-Fencing-Token: 34
//
// In front of the service's handler a Gate compares the token with what it knows. A token that a later leader has overtaken is answered with
// 409, a problem document (RFC 9457) with the code TOKEN_STALE and the newest token that is known; whoever is told this leads no more, and stops
// (Refusal reads it). Headers that are missing, doubled or malformed are answered with 400. If the Gate cannot find out, it lets nobody in
// and answers 503 with Retry-After.
//
// # What it knows
//
// There are two sources, alone or together:
//
//   - Marks: the highest token that has come to the resource, kept by the service itself. It is raised before the handler runs, and a lower token
//     never gets in again. It needs no Regent at run time, but believes what it is told: whoever may send commands can shut all leaders out by
//     a token that was never granted.
//   - Checks: Regent is asked (:checkToken) whether the token is that of the present leader, and the answer is believed for a moment. A service
//     that keeps nothing can do this. It refuses a former leader soon, not at once.
//
// Together the check comes first, so that only a token that was granted raises the mark. In any case the Gate stands behind authentication: a
// fencing token is no secret, and proves nothing of who sends it.
//
// # What it cannot do
//
// The comparison is one step and the handler's own write is another. A request of leader 33 that was let in, and then delays, writes after
// leader 34 has: no middleware can prevent that for a write that goes elsewhere.
//
//   - If the handler writes to a database, compare the token in the same transaction as the write. FromContext has the mark that was let in, and
//     the packages beside this one do it for Firestore, Spanner, SQL and Cloud Storage. What the Gate adds then is an early answer.
//   - If what the handler changes lives in this process, set Config.Serial: a later leader's requests wait until those of an earlier one have
//     been handled, and none of the earlier one's begins after that. Nothing comes between, because there is nothing else that writes.
//   - If the mark does not outlive the process (Memory), the one that follows knows of no leader until the first command comes.
//
// # Batches
//
// One request is one comparison, however much is in its body: a thousand operations of one leader cost one check. So send what belongs
// together in one request. A handler that works on one for long, and is in a position to stop half-way, may ask again in between, by
// Checks.Check with what FromContext has.
package httpfence
