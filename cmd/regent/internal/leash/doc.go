// Package leash runs a command that must be gone at a deadline which moves, whatever becomes of the process that runs it.
//
// Three processes hold a leash, all of the same program (see Main):
//
//	the caller of Run ──────── parent of ───────► the command, leader of a process group of its own
//	      │    ▲                                       ▲
//	 deadline  │ answers                               │ SIGKILL at the deadline, or when the caller is gone
//	      ▼    │                                       │
//	   the guard, in a session of its own ─────────────┘
//
// The caller sends SIGTERM to the group at Grace before the deadline, and SIGKILL at the deadline. The guard knows the deadline and nothing
// else; it kills the group when the deadline has passed, and at once when the caller has died. The kernel kills the command when the
// caller dies, too: the parent-death signal, which belongs to the thread that started the command, so that a goroutine is locked to it.
// A guard that died, or that was told something twice without an answer, is replaced, and the command goes on.
//
// The command begins as a gate: this program, started in the command's place, that waits for a word from the caller before it becomes the
// command. The word is given once the guard has said that it knows the group. Whoever dies before that, the command never runs.
//
// Deadlines are read on boottime.Now, which counts the time of a suspended machine.
//
// Killed is the group, and also whoever has left it: each process in whose environment there is this leash's own DeadlineVariable. Its value
// is in no other environment.
//
// # Out of reach
//
//   - The caller and the guard stopped at the same time, or kept from running until the deadline has passed by a machine that has no time for
//     them: nobody is left to act. So it is when the guard is killed and the caller stopped before another guard has begun to watch, which takes
//     some milliseconds, and more on a busy machine. The same for a suspended machine: the command may run for a moment after it wakes up.
//   - A process that left the group and cleared its environment, or that runs as another user or hides its environment (as after
//     PR_SET_DUMPABLE).
//   - What a process has already asked of others: a request on its way arrives also when its sender is dead.
//
// Against these helps only a fencing token that is checked where the write happens.
//
// Systems other than Linux have no parent-death signal, and their processes' environments are not read: there the guard alone sees the
// caller die, and who left the group is out of reach. On systems that are no Unix, Run refuses.
package leash
