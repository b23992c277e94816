// Package sqlfence keeps the writes of former leaders out of an SQL database, by database/sql and without a driver of its own. It speaks what
// PostgreSQL and SQLite have in common, and is tested on both. MySQL has no upsert with a condition, and is left out.
//
// # A mark beside the rows
//
// Check raises the mark of a resource inside a transaction of the caller, or refuses. It comes first, the reads and writes that it
// protects follow, as many as there are, and if Check returns an error the transaction is rolled back:
//
//	BEGIN
//	INSERT INTO regent_fence AS mark (resource, election, fencing_token) VALUES ($1, $2, $3)
//	    ON CONFLICT (resource) DO UPDATE SET fencing_token = excluded.fencing_token
//	    WHERE mark.election = excluded.election AND mark.fencing_token <= excluded.fencing_token
//	...                                                      1 row: go on; 0 rows: ROLLBACK
//	COMMIT
//
// # Why it is one statement, and writes even when nothing changes
//
// A SELECT of the mark proves nothing. It takes no lock, so that a later leader may raise the mark, write and commit between the SELECT
// and the COMMIT of the earlier one, whose writes then come last. READ COMMITTED, which PostgreSQL gives to whoever does not ask
// for more, lets all of that pass; SELECT … FOR UPDATE would not, but finds nothing to lock before the first write of all.
//
// An upsert that raises the mark takes the lock of its row, also if the token stays the same, and the database holds it to the end of the
// transaction. Whoever comes second waits there, and then compares with what the first has committed:
//
//	leader 33                      leader 34
//	   | Check: 1 row                 |
//	   |                              | Check: waits
//	   | writes, commits              | goes on: 1 row, and sees what 33 wrote
//	                                  | writes, commits
//	   | Check: 0 rows: TOKEN_STALE
//
// So the writes come in the order of their tokens, at every level of isolation. Where PostgreSQL is asked for REPEATABLE READ or
// SERIALIZABLE, whoever waited fails instead with a serialization failure (40001), and the caller repeats the transaction as it would
// after any other. SQLite has one writer at a time, and the upsert makes the transaction that writer; give it a busy timeout, or who
// comes second fails with SQLITE_BUSY.
//
// A COMMIT whose reply was lost may have been made. The transaction may be repeated, by the same leader, if its writes may.
//
// What is read before Check may be out of date by the time Check returns. A transaction that checks several resources does so in the order of
// their names, or two of them may wait for each other.
//
// # A token in the row itself
//
// If a leader's write is one UPDATE of one row, the row can keep the token, and neither a table of marks nor a transaction is needed:
//
//	UPDATE jobs SET state = $1, fencing_token = $2 WHERE id = $3 AND fencing_token <= $2
//
// with the column fencing_token BIGINT NOT NULL DEFAULT 0 (a NULL would refuse everybody). Without a transaction, too, the UPDATE waits for
// the row's lock, and then compares. It protects that row and no other. Landed says what 0 rows mean. A row that is deleted has
// forgotten its token; one that is inserted anew begins with the inserter's.
package sqlfence
