// Package cost counts what Regent asks of the cloud stores: RPCs, documents of Firestore, rows of Spanner. Prices change, and times depend on
// the machine; counts are the same everywhere, so that a test can hold them.
//
// # What is counted, and how
//
// A Tally hangs in the gRPC client of a store, sees every message that the client sends and gets, and unpacks those that name data:
//
//	Firestore  read     a document that was looked up, whether it is there or not, and each that a query found; a query that finds nothing
//	                    counts as one, as it is charged
//	           written  a write of a commit or a batch that was done; several changes of one document in one write are one
//	Spanner    read     a row that a statement returned, also those of THEN RETURN. A row that was only looked at within a statement is not
//	                    seen from here: of a decision it is the newest event, which comes back in the row of the election
//	           written  a row of a mutation, and each row that a statement changed
//
// The parts:
//
//	Operations   what each thing that Regent does costs by itself. The same code has the same counts: testdata holds them
//	Stretches    what a held election costs for a while at a whole instance, with more and more candidates that wait and watch
//	Readers      what those cost who read from the cache for an hour, on a clock that is turned by hand
//	Growth       what renewals of many elections cost, one by one and in batches
//	Rivals       what others need for the same, by their source
//
// The command in counts measures all of it, and writes a section in Markdown.
package cost
