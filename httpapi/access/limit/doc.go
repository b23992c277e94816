// Package limit keeps one principal from costing the others their leases.
//
// Each principal has, on each instance, a bucket of calls per second for each cost (wire.Cost), and
// a number of waiting candidates, of open streams and of elections that it may have. A call beyond
// that is refused with RATE_LIMITED and the time after which to come again; nothing was done. A
// batch counts for as many calls as it has parts: a batch larger than the bucket passes when that
// is full, and later calls wait until it is paid for. A call whose answer has many records counts
// once more for every 20 of them, which are paid for afterwards. Data written to journals,
// snapshots and checkpoints has a bucket of bytes, which holds those of eight seconds. A call that
// begins or finishes an effect, proposes or decides rewrites all effects, or all proposals, of the
// election, and pays for the bytes of all. An election counts for a day after its principal has
// last acquired, configured or delegated it, unless the principal deletes it.
//
// Renewals and releases have a bucket of their own, and places of their own among the calls that an
// instance makes at the same time. So a flood of other calls, of one principal or of a thousand,
// waits for places of its own kind while renewals pass. One principal has half of the places of
// either kind at most. A leader costs one call every ten seconds: the default limits are for
// thousands of leaders of one principal on one instance.
//
// Every door calls Admit before the body of a call is read. For a large body, Admit takes the bytes
// that Content-Length says or, without one, those of the largest body. Bodies limits the bytes of
// the bodies in transfer, and of large replies that are not read yet. Enter decides once the whole
// call is known.
//
// Long is a gate of its own, with or without principals: it keeps waiting candidates, long polls
// and streams from taking all requests that a platform lets an instance handle at a time, and one
// principal from taking those of all others.
//
// Calls that fail authentication have no rate limit: each costs the check of one token, from
// headers alone, and a limit could only apply after that check. The limit on connections bounds how
// many there are at a time, and the log has at most ten lines a second about them. Where IAM checks
// callers, such calls do not arrive; for a server that checks tokens itself, a load balancer can
// limit them by address (Cloud Armor).
//
// Each instance has its own counts, which start at zero. They protect the service; they are no
// basis for a bill.
package limit
