// Package sqlfence keeps the writes of former leaders out of an SQL database, through database/sql
// and without a driver of its own. It uses what PostgreSQL and SQLite have in common, and is tested
// on both. MySQL has no conditional upsert and is not supported.
//
// # A mark beside the rows
//
// Check raises the mark of a resource inside the caller's transaction, or refuses. It comes first,
// followed by any number of reads and writes that it protects. If Check returns an error, roll the
// transaction back:
//
//	BEGIN
//	INSERT INTO regent_fence AS mark (resource, election, fencing_token) VALUES ($1, $2, $3)
//	    ON CONFLICT (resource) DO UPDATE SET fencing_token = excluded.fencing_token
//	    WHERE mark.election = excluded.election AND mark.fencing_token <= excluded.fencing_token
//	...                                                      1 row: continue; 0 rows: ROLLBACK
//	COMMIT
//
// # Why it is one statement, and writes even when nothing changes
//
// A SELECT of the mark proves nothing. It takes no lock, so a later leader may raise the mark,
// write and commit between the SELECT and the COMMIT of the earlier one, whose writes then come
// last. READ COMMITTED, PostgreSQL's default, allows all of that; SELECT … FOR UPDATE would not,
// but finds no row to lock before the first write.
//
// An upsert takes the lock of its row even if the token stays the same, and the database holds it
// to the end of the transaction. A second transaction waits there, and then compares with what the
// first has committed:
//
//	leader 33                      leader 34
//	   | Check: 1 row                 |
//	   |                              | Check: waits
//	   | writes, commits              | continues: 1 row, and sees what 33 wrote
//	                                  | writes, commits
//	   | Check: 0 rows: TOKEN_STALE
//
// So writes are in the order of their tokens, at every isolation level. With REPEATABLE READ or
// SERIALIZABLE in PostgreSQL, the waiting transaction fails with a serialization failure (40001),
// and the caller repeats it as after any other. SQLite has one writer at a time, and the upsert
// makes the transaction that writer; set a busy timeout, or the second transaction fails with
// SQLITE_BUSY.
//
// A COMMIT whose reply was lost may have been made. The same leader may repeat the transaction if
// its writes may be repeated.
//
// Data read before Check may be out of date when Check returns. A transaction that checks several
// resources must do so in the order of their names, or two transactions may deadlock.
//
// # A token in the row itself
//
// If a leader's write is one UPDATE of one row, the row can hold the token, and neither a table of
// marks nor a transaction is needed:
//
//	UPDATE jobs SET state = $1, fencing_token = $2 WHERE id = $3 AND fencing_token <= $2
//
// with the column fencing_token BIGINT NOT NULL DEFAULT 0 (a NULL would refuse every leader). The
// UPDATE waits for the row's lock and then compares, even without a transaction. It protects only
// that row. Landed explains 0 rows. A deleted row has lost its token; one that is inserted again
// begins with the token of the insert. Beside the token stands no election, so all tokens of the
// column must be of one: for an election of another name add a new column, or raise its token above
// them first (regent admin raise).
package sqlfence
