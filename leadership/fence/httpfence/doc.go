// Package httpfence keeps the commands of former leaders out of a service that receives them over
// HTTP.
//
// A leader identifies itself in each request by two headers. Transport sets them, and sends nothing
// once the lease is over:
//
//	Regent-Election: planner
//	Regent-Fencing-Token: 34
//
// In front of the service's handler, a Gate compares the token with what it knows. A token that a
// later leader has overtaken is answered with 409, a problem document (RFC 9457) with the code
// TOKEN_STALE and the newest known token, which Refusal reads; unless a renewal brings a newer
// token, its sender must stop acting as leader. Missing, repeated or malformed headers are answered
// with 400. If the Gate cannot find out, it admits no request and answers 503 with Retry-After.
//
// # What a Gate knows
//
// There are two sources, alone or together:
//
//   - Marks: the highest token that has reached the resource, kept by the service itself. The mark
//     is raised before the handler runs, and a lower token is never admitted again. It needs no
//     Regent at run time, but believes every token: a sender of commands can lock all leaders out
//     with a token that was never granted, unless a signed statement shows that it was
//     (package statement, before the Gate).
//   - Checks: Regent is asked (:checkToken) whether the token is the current leader's, and the
//     answer is believed for a short time. This works for a service without storage. It refuses a
//     former leader soon, not at once. With ChecksConfig.Write Regent is asked as well whether the
//     leader may write, which it may not while the election has lost its quorum, or before it has
//     said that it serves: the answer is then 409 with READ_ONLY or NOT_READY, and the sender may
//     try again.
//
// With both, the check comes first, so that only a granted token raises the mark. In any case put
// the Gate behind authentication: a fencing token is not a secret, and proves nothing about its
// sender.
//
// # Limits
//
// The comparison is one step and the handler's own write is another. A request of leader 33 that
// was admitted, and then delays, writes after leader 34 has: no middleware can prevent that for a
// write that goes elsewhere.
//
//   - If the handler writes to a database, compare the token in the same transaction as the write.
//     FromContext returns the admitted mark, and the packages beside this one compare it for
//     Firestore, Spanner, SQL and Cloud Storage. The Gate then adds an early answer.
//   - If the handler changes only state of this process, keep the highest mark beside that state,
//     and compare it (Mark.Admit) under the lock that guards both.
//   - If the mark does not outlive the process (Memory), a restarted process knows no leader until
//     the first command arrives, and two processes know different ones: use Checks, or Marks that
//     they share.
//
// # Reads
//
// With Config.ReadsPass requests with GET and HEAD pass without a check. What that saves depends on
// how often an election is written to: an answer of Regent is believed for MaxAge, so of many
// requests within that time only the first costs a call.
//
// # Batches
//
// One request is one comparison, whatever is in its body: a thousand operations of one leader cost
// one check. So send operations that belong together in one request. A handler that takes long, and
// can stop half-way, may check again in between: pass the mark of FromContext to Checks.Check.
package httpfence
