// Package firestorefence keeps a former leader's writes out of a Firestore database. The mark of
// each resource is a document that is compared and raised in the caller's own transaction: either
// all of the transaction's writes are those of the current leader, or none is made.
//
//	client.RunTransaction(ctx, firestorefence.Fenced(doc, lease,
//		func(ctx context.Context, tx *firestore.Transaction) error {
//			... reads, then writes: one of them or a thousand
//		}))
//
// Fenced keeps the right order. Check is for code that has only the transaction, deep inside its
// function, and must keep the order itself.
//
// # Why a check without a write is enough
//
// Most checks find the mark at their own token, and only read it. They still exclude a later leader
// that raises it, because data that a transaction has read must not change before it commits. A
// Firestore database enforces that in one of two ways:
//
//	leader 33                    leader 34
//	   | Check: the mark is 33       |
//	   |                             | Check, Commit: the mark is 34   locks: waits for 33
//	   | Commit: ABORTED             |                                 optimistic: commits first
//	   | Check: TOKEN_STALE          |
//
// With locks 33 either commits before 34, or loses its lock and is refused as well. RunTransaction
// repeats the function after ABORTED; there Check reads 34 and refuses. So commits are in the order
// of the tokens.
//
// A leader that is paused inside a transaction holds its lock until Firestore ends the transaction:
// after 60 idle seconds. Until then the next leader gets ABORTED; RunTransaction makes five
// attempts, and then the caller must retry.
//
// Checks do not exclude each other: a leader may run many transactions at a time.
//
// # Costs
//
//	                                within the transaction
//	Check, by the leader            BatchGetDocuments: 1 document read
//	Check, its first                the same, and 1 document written with the Commit
//	Check that refuses              1 document read, and the Rollback that follows
//
// # Limits
//
// A BulkWriter, a WriteBatch and a write outside a transaction have no read in which the mark could
// be compared; their writes are not fenced. In a read-only transaction a check only reports who had
// written at its read time, and cannot raise the mark.
package firestorefence
