// Package spannerfence keeps a former leader's writes out of a Cloud Spanner database: the mark of each resource is a row, and is compared
// and raised in the caller's own read-write transaction. Either all that the transaction writes is the present leader's, or none of it is
// there.
//
//	client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
//		if err := fences.Check(ctx, tx, "accounts", lease); err != nil {
//			return err // nothing was written, and the client does not try again
//		}
//		... reads, DML, mutations: one of them or a thousand
//	})
//
// # Why a check that writes nothing is enough
//
// Most checks find the mark where it should be, and only read it. They still stand in the way of a later leader that raises it, because
// they hold a lock on the row until their transaction ends:
//
//	leader 33                          leader 34
//	   | Check: the mark is 33, locked     |
//	   |                                   | Check: waits for the lock
//	   | Commit  ------------------------->|        goes on: the mark is 34
//	   | Check: TOKEN_STALE                |
//
// If 33 does not commit, Spanner takes the lock from it, after ten idle seconds at the latest, and at once if 34's transaction is the older one.
// Then 33's Commit is refused with ABORTED, the client runs its function anew, and there Check reads 34, and refuses. So the commits come
// in the order of the tokens.
//
// The lock is exclusive: transactions that check the same resource run one after another. In return it holds at each isolation level that
// Spanner has, and a leader's first write does not deadlock with its own second one. See Table.Shared for leaders with many
// transactions at a time.
//
// # Costs
//
//	                                RPCs within the transaction
//	Check, by the leader            ExecuteStreamingSql
//	Check, its first                ExecuteStreamingSql, and one more (a DML statement) to raise the mark
//	Check that refuses              ExecuteStreamingSql, and the Rollback that follows
//
// The first statement of a transaction begins it: where that is Check, it costs no BeginTransaction.
//
// # What it does not do
//
// Apply, BatchWrite and partitioned DML have no read in which the mark could be compared; what they write is not fenced. A read-only transaction
// cannot be checked, and need not be. A database of the PostgreSQL dialect does not understand Check's statements.
//
// The emulator runs one read-write transaction at a time in a whole database, and so says nothing about locks.
package spannerfence
