// Package counts counts Regent's use of the cloud stores: RPCs, documents of Firestore, rows of
// Spanner. Prices change, and times depend on the machine; counts are the same everywhere, so that
// tests can check them. What follows from them is in test/load/etcd/cost.md.
//
// # What counts, and how
//
// A Tally in the gRPC client of a store sees every message that the client sends and receives, and
// counts the data in them:
//
//	Firestore  read     a document that was looked up, whether it exists or not, and each
//	                    that a query found; a query that finds nothing counts as one, as
//	                    it is charged
//	           written  a write of a commit or batch that was done; several changes of one
//	                    document in one write are one, and a deletion is one
//	Spanner    read     a row that a statement returned, also by THEN RETURN. A row that is
//	                    only looked at within a statement cannot be seen from here: in a
//	                    decision it is the newest event, which comes back in the
//	                    election's row
//	           written  a row of a mutation, and each row that a statement changed. A range
//	                    of rows that is deleted does not count
//
// The parts:
//
//	Operations   what each operation of Regent costs by itself; testdata has the counts
//	Turns        what renewals cost that reach several instances in turn
//	Readers      what readers from the cache cost, on a simulated clock
package counts
