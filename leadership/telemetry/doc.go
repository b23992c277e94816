// Package telemetry counts and times what an instance does. It stands around the store and the bus,
// and is a gate of the service; none of these knows of it. HTTP requests are timed by
// httpapi/timing.
//
//	door --> gate (Metrics) --> instance --> Store --> store
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
// Work that leaders report is counted by the instance that committed the renewal: as much as the
// numbers are above those of the report that the record had before, whichever instance took that.
// So a leader that moves to another instance is not counted twice.
//
// A bid is counted by the instance that wrote it, and a ballot is timed by the one that committed
// the grant, between two times of the store's clock. A write that only takes a bid back is none.
//
// Members are counted by the instance that they are at. What instances tell each other of members
// is not counted again; it decides participation and which elections are read-only, so that each
// instance shows what it knows: take the lowest participation, and the most elections.
//
// The gauges of elections are what one instance knows, from each answer of the store and from each
// event that other instances announce. All instances on one store know about the same: take the
// largest value, and not the sum. Pauses and approvals that wait are among them; the election that
// has waited for longest is read from the store at each collection, for an event may be missed.
//
// # Names
//
// All names, units and labels are in Catalogue. The values of a label are a closed list: callers
// choose the names of elections and candidates, and a label with such a name would cost one series
// for each. Only Metrics.ByName shows elections by name: those that an operator chooses, and 200 of
// them at most. A span may hold an election's name, in the path of the request. Neither holds a
// key.
package telemetry
