// Package leash runs a command that must be gone at a moving deadline, even if the process that
// runs it is killed or stopped.
//
// Three processes take part, all of the same program (see Main):
//
//	the caller of Run ──────── parent of ───────► the command, leader of its own process group
//	      │    ▲                                       ▲
//	 deadline  │ answers                               │ SIGKILL at the deadline,
//	      ▼    │                                       │ or when the caller is gone
//	   the guard, in its own session ──────────────────┘
//
// The caller sends SIGTERM to the group at Grace before the deadline, and SIGKILL at the deadline.
// The guard knows only the deadline; it kills the group when the deadline has passed, and at once
// when the caller has died. The kernel also kills the command when the caller dies: the
// parent-death signal, which belongs to the thread that started the command, so a goroutine stays
// locked to that thread. A guard that has died, or that has not answered one order when the next is
// due, is replaced while the command goes on.
//
// The command begins as a gate: this program, started in the command's place, which waits for a
// message from the caller before it executes the command. The caller sends the message once the
// guard has confirmed that it watches the group. If the caller or the guard dies before that, the
// command never runs.
//
// Deadlines are read on boottime.Now, which counts the time that the machine is suspended.
//
// The kill covers the process group and every process that has left it but has this leash's
// DeadlineVariable in its environment. Its value is unique to this leash.
//
// # Limits
//
//   - If caller and guard are both stopped, or the machine is too busy to run either of them until
//     the deadline has passed, nothing kills the command. The same holds if the guard is killed and
//     the caller is stopped before a new guard watches, which takes some milliseconds, and more on
//     a busy machine. A suspended machine may run the command for a moment after it wakes up.
//   - A process escapes if it left the group and cleared its environment, or hides its environment
//     (as after PR_SET_DUMPABLE).
//   - A process that runs as another user escapes if the caller may not signal that user's
//     processes. On Linux a command cannot become another user by a set-uid program such as sudo,
//     because the gate sets PR_SET_NO_NEW_PRIVS, unless the caller sets NewPrivileges.
//   - A request that a process has already sent arrives even when its sender is dead.
//
// Only a fencing token that is checked where the write happens protects against these.
//
// Systems other than Linux have no parent-death signal, and there Run cannot read the environment
// of processes: only the guard sees that the caller died, and processes that left the group escape.
// There the gate refuses a command that is itself set-uid or set-gid, and cannot see what it
// starts.
// On systems other than Unix, Run returns an error.
package leash
