// Package telemetry counts and times what an instance does, from outside: it stands around the store, the bus, the service and the HTTP
// handler, and none of them knows of it.
//
//	callers --> HTTP --> Service --> instance --> Store --> store
//	                                    |
//	                                   Bus --> topic
//
// # Who counts what
//
// A change is counted by the instance that committed it, and by no other: the sum over all instances is the number of changes, and so for terms
// and transitions, which are measured between instants of the store's clock as they stand in the record. A change whose reply was lost is
// counted by nobody.
//
// The gauges of elections are what one instance knows: from each answer of the store, and from each event that others announce. All instances
// on one store know of about the same, so that of these the largest is to be looked at, and not the sum.
//
// # Names
//
// All names, units and labels stand in Catalogue. The values of a label are a closed list: strangers choose the names of elections and
// candidates, and a label that they could fill would cost a series for each. A span may hold an election's name, in the path of the request;
// neither holds a key.
package telemetry
