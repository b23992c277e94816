// Package clients holds all clients of Regent to the same cases: the Go SDK, the Python package
// with threads and with asyncio, the TypeScript package, regent run and agent.sh.
//
// Each client is led by a driver, which is started once for a case: drivers/go,
// drivers/python/driver.py and drivers/typescript/driver.ts. A case tells the driver what to do,
// and breaks the connection between it and the server:
//
//	driver ──▶ proxy.Hop  ──▶ gate ──▶ record.Proxy ──▶ httpapi on store/memory
//	 ticks      cuts, stalls    loses, holds, delays,      the server's grants,
//	                            answers by itself          and when they end
//
// The driver's beliefs and the server's grants are one recording on one clock, CLOCK_BOOTTIME,
// which the checkers of test/checker judge. A case does not measure how fast something was; it
// waits for events.
//
// # The protocol of a driver
//
// A driver reads its settings from the environment, commands from standard input, and writes events
// to standard output, each line a JSON object, flushed at once. Standard error is for its log.
//
//	REGENT_SERVER      the server's URL
//	REGENT_ELECTION    the election
//	REGENT_CANDIDATE   the candidate's id
//	REGENT_LEASE       the duration to ask for, in seconds, as "3s"
//	REGENT_DRIVER      a JSON object of options; an option that is absent is false or empty
//
// Options:
//
//	"style"   "threads" or "asyncio": which API of the Python package
//	"idle"    true: do not lead, but wait for commands
//	"try"     true: do not stand in line: the call fails with LEASE_HELD if another leads
//	"again"   true: when a term was lost, ask again with a new key; otherwise the driver ends
//
// Events, with the members that each has beside "event". "at" is the time in nanoseconds of
// CLOCK_BOOTTIME, an integer; it must never be later than the event, and may be 10 ms earlier (as
// /proc/uptime is). "token" is always the fencing token of the lease as the client says it now.
//
//	asking    at                            the driver calls the function that leads
//	leading   at, token                     that function has returned a lease, or called the body
//	tick      at, token, valid, remainingMs every 20 ms while the body runs; see below
//	lost      at, token, code               the term has ended before the body did
//	released  at, token                     the client's function, or block, has ended, after a
//	                                        body that ended while the lease was valid
//	seen      revision, type, token         an event of a watch; "type" is "" for the state with
//	                                        which a watch without a revision begins
//	item      revision, type                an item of the journal: its index, and "entry" or
//	                                        "snapshot"
//	done      call                          a call has succeeded; see the command call
//	error     code, detail, call            a call has failed: "lead", "watch" or the kind
//	end                                     the last line, before the driver exits with code 0
//
// A tick is made so: read the clock; ask the lease for its token; ask valid(); ask remaining(),
// which is "remainingMs", a number, rounded down, 0 once it is over; then write it with the time
// read first. So the belief held at that time.
//
// The body that a driver leads with only ticks. It ends by the command stop; by the cancellation
// that the command cancel brings about; and, when the lease is over, after ten more ticks, which
// show that nothing revives it. "lost" is written once for a term, after the first tick that is not
// valid and once the client's own signal has told of it too (the end of the context, the Event, the
// AbortSignal; the driver waits for it). A tick that is not valid after stop or cancel is not
// "lost".
//
// The code of "lost" and of "error" is the code of the problem document that ended it, such as
// "LEASE_LOST" or "ELECTION_DELETED", or
//
//	DEADLINE    the deadline has passed
//	CANCELLED   the call, or the term, was cancelled from outside
//	OTHER       an error without a code; "detail" says more
//
// "detail" is the text of the error. It must not contain the key of the lease. A cancelled call of
// leading is {"event":"error","call":"lead","code":"CANCELLED"}. A body that the command cancel
// ended writes no "error", but "released" as after stop.
//
// Commands, one a line:
//
//	stop         the body ends normally; watches end. If it does not lead it is cancel
//	cancel       the call in progress is cancelled from outside, as a program does it: by the
//	             context, the task, or the AbortSignal of the call that leads, of the watch, and
//	             of each call. It may come at any time: while the call to lead waits in line,
//	             while a renewal, a release or another call is under way, or while the body ticks
//	watch AFTER  watch the election beside what else is done, from after the revision AFTER;
//	             without AFTER from the present state. Each event is a "seen"
//	report N     say in the lease's report that the progress is N
//	call KIND    make a call beside the ticks, of this kind:
//	               read        read the election
//	               members     read its members
//	               follow      follow its journal for five items, each of which is an "item"
//	               propose     propose "ask" of the kind "ask", and wait for the decision, whose
//	                           verdict is the type of an "item"
//	             and, while it leads:
//	               decide      accept the proposal "ask"
//	               checkpoint  keep the JSON string "here" as the election's checkpoint
//	               newer       keep the JSON string "there" as its checkpoint
//	               begin       begin the effect "once", whose state is the type of an "item"
//	               finish      finish it, with the JSON string "here"
//	               append      append the JSON string "here" to its journal
//	               handover    hand the term over to the best candidate in line
//	               check       ask whether the token of the lease is the newest
//
// A driver ends when its term is over (unless "again"), or its watch, or, if it is idle, by stop or
// cancel: it writes "end" and exits with 0. It waits for calls that are under way, so that after
// cancel nothing of it is left. At the end of standard input it exits at once, without cleaning up:
// the test is gone.
//
// # Clocks
//
// No case sets the machine's clock. The wall clock of a client is made to jump by a library that
// stands before the C library (drivers/wallclock.c). The gate makes replies whose times of day
// jump. A test cannot suspend the machine: a time namespace moves CLOCK_BOOTTIME against
// CLOCK_MONOTONIC only when it begins, and a client that uses the wrong one of the two differs only
// across a suspension. The tests of each client's clock check that.
//
// # Commands under a wrapper
//
// regent run and agent.sh run "driver worker", a part of the Go driver, which writes
// "leading" and ticks that are valid for as long as it lives, reads stop and report from standard
// input, and takes no other command. The test sends SIGTERM to the wrapper for cancel, and writes
// "lost", "released" and "error" itself, from how the wrapper has ended.
package clients
