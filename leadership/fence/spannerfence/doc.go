// Package spannerfence keeps a former leader's writes out of a Cloud Spanner database. The mark of
// each resource is a row that is compared and raised in the caller's own read-write transaction:
// either all of the transaction's writes are those of the current leader, or none is made.
//
//	client.ReadWriteTransaction(ctx,
//		func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
//			if err := fences.Check(ctx, tx, "accounts", lease); err != nil {
//				return err // nothing was written, and the client does not retry
//			}
//			... reads, DML, mutations: one of them or a thousand
//		})
//
// # Why a check without a write is enough
//
// Most checks find the mark at their own token, and only read it. They still exclude a later leader
// that raises it, because they hold a lock on the row until their transaction ends:
//
//	leader 33                          leader 34
//	   | Check: the mark is 33, locked     |
//	   |                                   | Check: waits for the lock
//	   | Commit  ------------------------->|        continues: the mark is 34
//	   | Check: TOKEN_STALE                |
//
// If 33 does not commit, Spanner takes the lock from it after ten idle seconds at the latest, and
// at once if 34's transaction is older. Then 33's Commit is refused with ABORTED, the client
// repeats its function, and there Check reads 34 and refuses. So commits are in the order of the
// tokens.
//
// The lock is exclusive: transactions that check the same resource run one after another. In return
// it holds at every isolation level of Spanner, and two first transactions of one leader do not
// deadlock. See Table.Shared for leaders with many transactions at a time.
//
// # Costs
//
//	                                RPCs within the transaction
//	Check, by the leader            ExecuteStreamingSql
//	Check, its first                ExecuteStreamingSql twice: the second (DML) raises the mark
//	Check that refuses              ExecuteStreamingSql, and the Rollback that follows
//
// The first statement of a transaction begins it: if that is Check, there is no BeginTransaction.
//
// # Limits
//
// Apply, BatchWrite and partitioned DML have no read in which the mark could be compared; their
// writes are not fenced. A read-only transaction cannot be checked, and need not be. Check's
// statements do not work in databases with the PostgreSQL dialect.
//
// The emulator runs one read-write transaction at a time per database, so it proves nothing about
// locks.
package spannerfence
