// Package spanner keeps leases in Cloud Spanner: for a leadership that must outlive a region, or if
// Spanner is used already. It implements service.Store and service.Journal.
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
// A record and its events are stored next to each other, so that they commit in one place, and
// Spanner itself refuses to delete an election that has a history. All keys begin with a name, and
// the index by time with a shard: none begins with a time or a counter, which would be a hot spot,
// except for the index over retire_at, which few changes write. The JSON of the metadata is kept in
// Spanner's form, and converted to leadership's canonical form when it is read.
//
// # Schema versions
//
// There is one version, 1. Each row has its version, and a row of another version is refused.
// Tables of a later version are used only if their column lowest allows this program.
//
// # Time
//
// A lease starts with the commit of its heartbeat: Leadership.renewed_at is a commit timestamp.
// Spanner also decides whether it is over, in the deciding transaction: the query that reads the
// row also returns CURRENT_TIMESTAMP(), and a renewal compares the two in its WHERE clause. No
// process's clock is involved.
//
// A commit may be done long after its statement, and its reply be lost. So a renewal writes, in
// prior_end, the end of the lease that it renews: one that is committed no earlier does not count,
// for any reader, even if the process that sent it is gone. A lease ends, then, when
//
//	renewed_at < prior_end, or a grant:  renewed_at + lease_ms
//	otherwise:                           prior_end
//	in each case, with ends_by:          at ends_by at the latest
//
// A grant has no prior_end, and any other change leaves both columns as they are. The end is
// computed in queries. It has no column, because it is known only at the commit, and Spanner lets
// no generated column depend on a commit timestamp.
//
// CURRENT_TIMESTAMP() may be taken before the query has its locks. It is then too early, never too
// late, so that a lease seems to last longer. Only a server's clock that runs ahead can do harm,
// and Guard protects from that. A read without a transaction holds no locks, and
// CURRENT_TIMESTAMP() may be later than the state that it sees: Get's time is the read timestamp
// instead. Spanner does not promise how fresh that is, only that the read misses no earlier commit.
// So without a transaction Update refuses only what it would also refuse at CURRENT_TIMESTAMP(). A
// rule that asks for more data there is answered as of the read timestamp.
//
// # History
//
// An event is kept until Config.History after a later one of its election was written, and some
// minutes more, because a commit may be that much later than its transaction's CURRENT_TIMESTAMP().
// The newest event always stays, because the record is checked against it. Spanner deletes events
// by itself, with low priority, usually within three days, announced or not. Since does not rely on
// events older than Config.History, whether they are still there or not.
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
// again, with all its RPCs. The Rollback is sent because a read-write transaction has locked the
// rows that it read: Spanner would release these by itself only after ten idle seconds.
//
// An Update first reads without a lock, because most calls that may be refused are refused:
// candidates ask for a held lease again and again, and for a free one once. A refusal then costs
// half as much, and neither waits for the leader's renewal nor delays it. In return a grant costs
// one more RPC, a few milliseconds. Release, Configure and Delete nearly always write, and say so
// (rule.Expect).
//
// A renewal checks for each lease that it is the one named, that its end has not come, and that its
// record agrees with its history. It reads nothing beforehand, and a lease that does not match does
// not affect the others. If the record of one cannot be decoded, nothing is committed, and the
// statement runs once more without it.
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
