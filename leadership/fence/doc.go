// Package fence keeps writes of former leaders out of the resources that leaders write to.
//
// A lease makes it rare that two leaders act at once, but cannot rule it out: a leader that is
// paused between checking its lease and the arrival of its write does not know that it has lost the
// lease, however carefully it checked. The fencing token makes the late write harmless, if it
// travels with the write and the resource remembers the highest token:
//
//	resource       leader 33          leader 34
//	   |              | paused
//	   |<------------------ write, 34 --|         the mark is 34
//	   |<- write, 33 -|                           refused: TOKEN_STALE, 34 has written
//
// A Mark is that memory: the election that guards a resource, and the highest token that has
// written to it. Mark.Admit is the whole rule. What differs is where the mark is kept, and how it
// is compared and raised in one step with the write that it protects; a check that comes first and
// a write that comes later are defeated by a pause between them. The packages below do it inside a
// Firestore or Spanner transaction of the caller, in an SQL statement, in a script of BigQuery,
// with a precondition of Cloud Storage, and in front of an HTTP handler or a Pub/Sub subscriber.
// Guard does it in memory, for a resource that lives in one process.
//
// The first write of a new leader raises the mark, not its election. Until then its predecessor may
// still write: that destroys nothing that the new leader did, but data that the new leader has
// already read may be out of date. A leader that reads in order to write must therefore raise the
// mark first, by a write or by a check alone, or read and write in one transaction.
//
// A new epoch gives the same leader the next token, which it learns by its next renewal. In between
// a resource that knows the epoch refuses the old token as it refuses that of a former leader, and
// the leader cannot tell which it is: it must not act until it has renewed, and must stop for good
// unless the renewal brings a newer token.
package fence
