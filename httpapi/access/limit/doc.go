// Package limit keeps one principal from costing the others their leases.
//
// Each principal has, on each instance, a bucket of calls per second for each cost (wire.Cost), and
// a number of waiting candidates, of open streams and of elections that it may have. A call beyond
// that is refused with RATE_LIMITED and the time after which to come again; nothing was done. A
// batch counts for as many calls as it has parts: one that is bigger than the bucket passes when
// that is full, and later calls wait until it is paid for. A call whose answer has many records
// counts once more for every 20 of them: its caller owes that. What leaders leave behind in
// journals, snapshots and checkpoints has a bucket of bytes, which holds those of eight seconds. A
// call that begins or finishes an effect, proposes or decides reads and writes all effects, or all
// proposals, of the election, and its caller owes the bytes of all. An election counts for a day
// after its principal has used it last, by acquiring, configuring or delegating it, unless the
// principal deletes it.
//
// Renewals and releases have a bucket of their own, and places of their own among the calls that an
// instance makes at the same time. So a flood of other calls, of one principal or of a thousand,
// waits for places of its own kind while renewals pass. One principal has half of the places of
// either kind at most. A leader costs one call every ten seconds: the default limits are for
// thousands of leaders of one principal on one instance.
//
// Admit is asked before the body of a call is read, by every door, and takes the bytes of a large
// one, as Content-Length says; without it, those of the largest. Bodies bounds the bytes of those
// that are under way, and those of large replies that are not read yet. Enter decides when all of
// the call is known.
//
// Long is a gate of its own, with or without principals: it keeps waiting candidates, long polls
// and streams from taking all requests that a platform lets an instance handle at a time, and one
// principal from taking those of all others.
//
// A call whose caller is not known has no principal, and no rate: it costs the check of one token,
// from headers alone, and a rate could be kept only after that. The connections of the server bound
// how many there are at a time, and the log has ten lines a second of them. Where IAM checks
// callers they do not arrive; for a server that checks them itself, a load balancer can bound them
// by address (Cloud Armor).
//
// The counts are an instance's own and start again with it. They keep a service alive; they are no
// basis for a bill.
package limit
