// Package limit keeps one principal from costing the others their leases.
//
// Each principal has, on each instance, a bucket of calls a second for each kind of call, and room for so many candidates in line, so many open
// streams and so many elections. Whoever asks for more is told RateLimited, and when to come again; nothing was done.
//
// Renewals and releases have a bucket of their own, and places of their own among the calls that an instance makes at a time: a flood of campaigns and
// reads, of one principal or of a thousand, waits for the places of its kind while renewals go by. A leader that keeps its lease costs a
// call every ten seconds; the default limits are for some thousand leaders of one principal on one instance.
//
// The counts are an instance's own, and begin anew when it does. They are there to keep a service alive, not to make a bill.
package limit
