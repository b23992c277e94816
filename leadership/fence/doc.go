// Package fence keeps the writes of former leaders out of what a leader writes to.
//
// A lease makes it rare that two act at once. It cannot make it impossible: a leader that was stopped between the moment it looked at its lease
// and the moment its write arrives does not know that it leads no more, however carefully it looked. What makes the late write harmless
// is the fencing token, if it travels with the write, and if that which is written to remembers the highest one:
//
//	resource       leader 33          leader 34
//	   |              | paused
//	   |<------------------ write, 34 --|         the mark is 34
//	   |<- write, 33 -|                           refused: TOKEN_STALE, 34 has written
//
// A Mark is that memory: the election that guards a resource, and the highest token that has written to it. Its Admit is the whole rule. All the
// rest is where the mark is kept, and how it is compared and raised in one step with the write that it protects; a check that
// comes first, and a write that comes later, is a check that a pause between them defeats. The packages below this one do it inside a
// Firestore or a Spanner transaction of the caller, in an SQL statement, by a precondition of Cloud Storage, and in front of an HTTP handler.
// Guard does it in memory, for a resource that lives in one process.
//
// The mark is raised by the first write of a new leader, not by its election. Until then its predecessor may still write: nothing that the new
// leader did is lost by that, but what it read before may be out of date. So a leader that reads in order to write first raises the
// mark, by a write or by a check alone, and then reads, or does both in one transaction.
package fence
