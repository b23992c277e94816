// Package telemetry counts and times the work of an instance. It wraps the store and the bus, and
// is a gate of the service; none of these knows of it. HTTP requests are timed by httpapi/timing.
//
//	API  --> gate (Metrics) --> instance --> Store --> store
//	                               |
//	                              Bus --> topic
//
// # Who counts what
//
// A change is counted by the instance that committed it, and by no other. So the sum over all
// instances is the number of changes. The same holds for terms and transitions, which are measured
// between times of the store's clock, as the record has them. A change whose reply was lost is not
// counted.
//
// Work that leaders report is counted by the instance that committed the renewal: the increase over
// the record's previous report, whichever instance took that. So the work of a leader that moves to
// another instance is not counted twice.
//
// A bid is counted by the instance that wrote it, and a ballot is timed by the one that committed
// the grant, between two times of the store's clock. A write that only removes a bid does not
// count.
//
// Members are counted by the instance that they are at, and not again by the others. But
// participation, and which elections are read-only, depend on the members of all instances, and
// each instance shows what it knows: take the lowest participation, and the largest number of
// elections.
//
// The gauges of elections show one instance's knowledge, from each answer of the store and each
// event of other instances. All instances on one store know roughly the same: take the largest
// value, and not the sum. They include pauses and approvals that are waited for; the election that
// has waited longest is read from the store at each collection, because an event may be missed.
//
// # Names
//
// All names, units and labels are in Catalogue. The values of a label are a closed list: callers
// choose the names of elections and candidates, and a label with such a name would cost one series
// for each. Only Metrics.ByName shows elections by name: those that an operator chooses, and 200 of
// them at most. A span may hold an election's name, in the path of the request. Neither holds a
// key.
package telemetry
