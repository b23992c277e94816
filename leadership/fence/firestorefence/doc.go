// Package firestorefence keeps a former leader's writes out of a Firestore database: the mark of each resource is a document, and is compared
// and raised in the caller's own transaction. Either all that the transaction writes is the present leader's, or none of it is there.
//
//	client.RunTransaction(ctx, firestorefence.Fenced(doc, lease, func(ctx context.Context, tx *firestore.Transaction) error {
//		... reads, then writes: one of them or a thousand
//	}))
//
// Fenced does all of it in the right order. Check is for who has the transaction only, deep in its function, and can see to the order.
//
// # Why a check that writes nothing is enough
//
// Most checks find the mark where it should be, and only read it. They still stand in the way of a later leader that raises it, because
// what a transaction has read may not change before it commits. Firestore has two ways to see to that, and a database has one of them:
//
//	leader 33                          leader 34
//	   | Check: the mark is 33             |
//	   |                                   | Check, Commit: the mark is 34    pessimistic: waits for 33, which has a lock on the document
//	   | Commit: ABORTED                   |                                  optimistic: is done, and then 33's Commit is refused
//	   | Check: TOKEN_STALE                |
//
// With locks 33 commits before 34 does, or loses its lock, and is refused as well. RunTransaction runs the function anew after an ABORTED; there
// Check reads 34, and refuses. So the commits come in the order of the tokens.
//
// A leader that is stopped in the midst of a transaction has its lock until Firestore ends that: after 60 idle seconds. Until then whoever comes
// next gets ABORTED, for which RunTransaction tries five times by itself, and then has to try again.
//
// Checks do not stand in each other's way: a leader may have many transactions at a time.
//
// # Costs
//
//	                                within the transaction
//	Check, by the leader            BatchGetDocuments: 1 document read
//	Check, its first                the same, and 1 document written with the Commit
//	Check that refuses              1 document read, and the Rollback that follows
//
// # What it does not do
//
// A BulkWriter, a WriteBatch and a write outside of a transaction have no read in which the mark could be compared; what they write is
// not fenced. In a read-only transaction a check says only who had written at the moment that it sees, and cannot raise the mark.
package firestorefence
