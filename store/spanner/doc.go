// Package spanner keeps leases in Cloud Spanner: for a leadership that must outlive a region, or
// where Spanner is there already. It implements service.Store and service.Journal.
//
// # Layout
//
// schema.sql has the tables; `regent admin migrate` creates them from it, and so can Terraform.
//
//	LeadershipSchema   one row: the schema version, and the lowest of a program that may use it.
//	                   Migrate writes it last, Open reads it first
//	Leadership         a row for each election, by its name, for ever. policy and standing are
//	                   texts that only rule.Codec looks into; a new member of theirs is
//	                   no new column. Two indexes without NULLs are for the tick: over the
//	                   elections that have a leader, and over those that are to be retired,
//	                   by retire_at. No renewal changes them
//	LeadershipEvents   a row for each event, by election and revision, interleaved in Leadership
//	                   pending is set until the event is announced: with an index that
//	                   leaves out NULLs, the outbox
//	                   shard and committed_at have an index, for Since and looks at the outbox
//	                   delete_after is set once there is a later event: by it Spanner deletes
//	                   events that are too old
//	LeadershipLogs     a row for the head of each log, by election and kind, for ever
//	LeadershipLogSegments
//	                   a row for what was appended together, by the index of its last entry;
//	                   0 for the snapshot. Interleaved in LeadershipLogs, so that an append
//	                   commits in one place, and a part of a log is a range of keys
//
// A change and its events lie next to each other, so that they commit in one place, and Spanner
// itself refuses to delete an election that has a history. Names come first in all keys, and a
// shard in the index by time: nothing begins with a time or a counter, at which all writes would
// meet, but the index over retire_at, which few changes write. The JSON of the metadata is kept in
// Spanner's form, and brought back into leadership's when it is read.
//
// # Schema versions
//
// There is one version, 1. A row says which version it is of, and one of another version is
// refused. Tables of a later version are used only if they say, by lowest, that this program may.
//
// # Time
//
// A lease starts with the commit of its heartbeat: Leadership.renewed_at is a commit timestamp.
// Whether it is over, Spanner says too, in the transaction that decides: the query that reads the
// row returns CURRENT_TIMESTAMP() beside it, and a renewal compares the two in its WHERE clause. No
// process's clock has a part in it.
//
// A commit may be done long after its statement was, and its reply be lost. So a renewal writes, in
// prior_end, the end of the lease that it renews: one that is committed no earlier does not count,
// for any reader, even if the process that sent it is gone. A lease ends, then, when
//
//	renewed_at < prior_end, or a grant:  renewed_at + lease_ms
//	otherwise:                           prior_end
//	in each case, with ends_by:          at ends_by at the latest
//
// A grant has no prior_end, and whatever is no heartbeat leaves both columns as they are. The end
// is computed where it is asked for. It has no column: it is known only when the commit is, and
// Spanner lets no generated column depend on a commit timestamp.
//
// CURRENT_TIMESTAMP() may be taken before the query has its locks. It is then too early, never too
// late, and a lease looks the longer for it. Only a server's clock that runs ahead can do harm, and
// Guard stands against that. A read without a transaction holds no locks, and CURRENT_TIMESTAMP()
// may be later than what it sees: Get's time is the read timestamp instead. How fresh that is,
// Spanner does not promise, only that nothing committed before the read is missing. So Update
// refuses without a transaction only what CURRENT_TIMESTAMP() would refuse too.
//
// # History
//
// An event is kept until Config.History after a later one of its election was written, and some
// minutes more, for what lies between a transaction's CURRENT_TIMESTAMP() and its commit. The
// newest one always stays: the record is held against it. Spanner deletes by itself, with low
// priority, usually within three days, announced or not. Since counts on nothing that is older than
// Config.History, be it there or not.
//
// # Costs
//
//	                                      RPCs
//	Update that refuses, or has no need   ExecuteStreamingSql, outside of any transaction
//	Update that writes                    the same, and ExecuteStreamingSql, Commit
//	Update that expects to write          ExecuteStreamingSql, Commit (Rollback if it does not)
//	Renew, of 1 to 500 leases             ExecuteStreamingSql (one DML statement), Commit
//	MarkAnnounced, of 1 to 500 events     StreamingRead (of their keys), Commit
//	Held, Retirable                       ExecuteStreamingSql, by an index each
//	Get, List, Events, Since              ExecuteStreamingSql, outside of any transaction
//	Unannounced                           the same, and goes on behind a corrupt event; a look at
//	                                      all elections reads what was committed since the last
//	                                      one, and once an hour, with one RPC more, the whole
//	Amend, of a log                       StreamingRead, Commit (Rollback if nothing is written)
//	Look, Segments, Snapshot              StreamingRead, outside of any transaction
//	Trim                                  BeginTransaction, Commit (one mutation: a range of keys)
//	Logs                                  ExecuteStreamingSql, outside of any transaction
//
// The first call of a client creates its session, with one more RPC. An aborted transaction runs
// again, with all its RPCs. The Rollback is sent because a read-write transaction has locked what
// it read: Spanner would give that back by itself after ten idle seconds only.
//
// An Update reads without a lock first because most of those that may be refused are: candidates
// ask for a lease that is held again and again, and for one that is free once. A refusal then costs
// half as much, and neither waits for the leader's renewal nor holds it up. What it costs is one
// more RPC at a grant, a few milliseconds. Release, Configure and Delete nearly always write, and
// say so (rule.Expect).
//
// A renewal asks of each lease that it is the one named, that its end has not come, and that its
// record agrees with its history; it reads nothing beforehand, and one lease that does not match
// takes no other with it. One whose record cannot be decoded does, for one round: nothing is
// committed, and the statement runs once more without it.
//
// A row that another transaction has locked keeps the whole statement waiting: a process that died
// between read and commit leaves a lock for about ten seconds. So a renewal of several leases is
// given up after a quarter of Config.CallTimeout, 2.5 s by default, and sent again in eight pieces
// at a time, each with half of that, and those that are too slow in eight again: after three such
// rounds every piece is a single lease, and only leases with a locked row were not renewed. If at
// first all pieces are too slow, the store is, and they get all the time that is left.
//
// # Outcomes
//
// A Commit that was sent and not answered is OUTCOME_UNKNOWN, whatever is answered to its
// repetitions: the client sends it again by itself, so an interceptor notes what each one got. So
// is a transaction that ran again after that, and was refused. All else that fails is
// STORE_UNAVAILABLE: nothing was written. Every call ends with its context, and at the latest after
// Config.CallTimeout.
//
// # What the emulator cannot show
//
// It runs one read-write transaction at a time for a whole database, and a Store queues its own for
// it and divides no renewals; so it says nothing of locks, throughput or latency, nor of when
// Spanner gives back the locks of a statement that was given up. It has one clock. It takes a
// deletion policy, and deletes nothing by itself. It accepts what Cloud Spanner refuses, such as
// returning a pending commit timestamp, and has no optimizer: a renewal of many leases, one seek
// each on Cloud Spanner, reads the whole history there for each of them. Its commit timestamps run
// up to some milliseconds ahead of its CURRENT_TIMESTAMP(), which Guard covers. Up to version
// 1.5.37 it does not know the client's sessions; see emulator.go.
package spanner
