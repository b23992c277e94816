// Package firestore keeps elections and their logs in Firestore. A lease is one document; a renewal
// needs one write and no read.
//
// # Documents
//
//	leadership/{election}                    the record: leaderId, fencingToken, …; see
//	                                         recordSchema for how it may evolve
//	leadership/{election}/events/{revision}  one event, its revision with 20 digits, so that
//	                                         names sort as revisions do
//	leadership/{election}/history/newest     revision and token of the newest event, with which
//	                                         the record is compared
//	leadershipLogs/{election}!{kind}         the head of a log: text, body; kind is checkpoint or
//	                                         journal
//	leadershipLogs/…/segments/{index}        entries that were appended together, by the index of
//	                                         the last, with 20 digits; 0 for the snapshot
//
// This package deletes nothing. By TTL policies the database itself deletes events (see History)
// and the remains of trimmed segments (see Logs). Editing the first document by hand extends its
// lease, because its update_time changes. This package refuses a record with a field that it does
// not know: labels and the like belong elsewhere. policy and standing are texts that only
// rule.Codec looks into; a new member in them is no new field.
//
// # Guards
//
// A change is one Commit, all or nothing: the lease document on the condition that its update_time
// is still the one that was read (or that it does not exist), the events on the condition that they
// do not exist, and the newest event without one, because the first condition covers it. So no lock
// is ever held, a process that dies blocks no other, and the second of two writers reads and
// decides again. There is no Firestore transaction: it would take three calls, a lock, and pauses
// of up to a second.
//
// A record that disagrees with history/newest, and an event that exists beyond it, are
// RECORD_CORRUPT.
//
// # Time
//
// All times are Firestore's, to the microsecond. Now is the time of the read or of the commit. A
// lease starts at the lease document's update_time if the last write was a heartbeat; any other
// write copies the start into renewedAt, and a heartbeat removes it. A heartbeat also counts, in
// the field heartbeats, since a write that changes nothing would leave update_time where it is.
//
// A renewal learns the time of its commit only from the reply. So it writes, in renewalDue, the end
// of the lease that it renews: one that is committed no earlier does not count, for any reader,
// even if the process that sent it is gone. A lease ends, then, when
//
//	update_time < renewalDue, or a grant:  update_time + leaseDurationMs
//	otherwise:                             renewalDue
//	with renewedAt:                        renewedAt + leaseDurationMs
//	in each case, with endsBy:             at endsBy at the latest
//
// An event's time is its document's create_time. That cannot be queried, so Firestore also writes
// the time of the request into the event, as requestedAt. It is earlier by as long as the commit
// takes, for which Firestore has limits far below five minutes: Since reads from five minutes
// before the instant, and leaves out earlier events. If it has read many of these events before, it
// only counts them.
//
// # History
//
// An event may be deleted after deleteAfter: Config.History, and five minutes more for the same
// reason, after the read that its change was decided on. A TTL policy of the database does that,
// usually within a day, announced or not, even for the newest event of an election: history/newest
// stays, and the record is checked against that. Since does not rely on events older than
// Config.History, whether they are still there or not.
//
// # Logs
//
// A change of a log is one Commit: its segments, and its head on the condition that its update_time
// is still the one that was read. A Store remembers the heads that it last read or wrote to change
// them (10,000 of them, with 64 MiB together), so that the next change needs no read; if another
// process has changed the head meanwhile, the Commit fails, and the Store reads and decides anew.
// The lease document has no part in it. writes counts the changes, since a change that leaves text
// and body as they are would leave update_time, too. A segment is as old as its document, unless a
// copy brought another time with it, in the field at.
//
// A trimmed segment is replaced by {schema, deleteAfter}, due at once, which a TTL policy of the
// database deletes, usually within a day. (The right to delete segments would include deleting
// leases, because IAM does not distinguish collections.) Until then each such document costs a read
// in a Trim by a handle that has not trimmed the log yet, and in a read of segments that begins
// before it; a read that finds nothing else continues where the snapshot ends.
//
// A document has at most 1 MiB, so a head and a segment of a log may each have
// rule.MaxLogBytes.
//
// # Renewals without a read
//
// A Store remembers the leases that it last read or wrote, with their update_time. A renewal of a
// remembered lease is sent with that update_time as its guard. If the guard fails, or the lease is
// not known, the answer is ErrNotRenewed, and the caller's Update reads.
//
// A renewal with a report, or one that moves on with the lease of a parent, changes more, so the
// rule has to decide on it. It decides on the remembered version, at the latest time of Firestore
// in any reply so far, and the whole document is written under the same guard. If the rule refuses,
// or wants an event, Update reads and decides again, because the remembered version may be out of
// date.
//
// With each heartbeat a Store also gives the leader a ticket: the lease document and its
// update_time, sealed. With the ticket a Store knows the lease even if another process has written
// it. So an agent that sends its ticket may use another process for every renewal; one that does
// not should stay with one process, because each change costs a read. Metadata, policy and standing
// that make the ticket longer than 1 KiB are left out of it: each process then reads the lease
// once, and again when they have changed, as they do with each report.
//
// Tickets are sealed by AES-GCM under a secret of the database, to the database's name. It is made
// at the first grant, and anew after a week:
//
//	leadershipTickets/secret   schema, key, previous (which still opens tickets), createdAt
//
// Each process reads it when it first needs it, and once an hour. To invalidate all tickets, delete
// the document. A reader of the document can forge tickets, and so renew any lease: as with the
// records themselves, only Regent may read it.
//
// # Costs
//
//	                         calls                       reads  writes
//	grant, release, …        BatchGetDocuments, Commit   2      2 + events
//	refusal, Get             BatchGetDocuments           2      0
//	renewal                  Commit                      0      1
//	renewal with a report    Commit                      0      1
//	with progress, if a      BatchGetDocuments, Commit   2      1
//	lease is more than a 20th
//	of stuckAfter
//	without memory or ticket BatchGetDocuments, Commit   2      1
//	n renewals, n ≤ 500      BatchWrite                  0      n
//	List, Events             RunQuery                    found  0
//	Held, Retirable          RunQuery                    found  0
//	Unannounced              RunQuery                    found  0
//	Since                    RunQuery, one for each      found  0
//	                         1000 events
//	Since, of 1000 and more  RunAggregationQuery,        found, and 1 of 1000 read before
//	read before              and RunQuery as above
//	MarkAnnounced, n ≤ 500   BatchWrite                  0      n
//	Amend                    Commit                      0      1 + segments
//	with an unknown head     BatchGetDocuments, Commit   1      1 + segments
//	Look, Snapshot           BatchGetDocuments           1      0
//	Segments, Logs           RunQuery                    found  0
//	Segments, all trimmed    RunQuery, three times       found  0
//	Trim, for each 500       RunQuery, BatchWrite        found  found
//
// Firestore bills by document: an agent that renews every 10 s makes 260,000 writes a month. A call
// that loses a race for the lease document pays its two reads again.
//
// Held is a query for a leaderId that is not empty, Retirable one for retireAt, which only a vacant
// election with a RetireAfter has, or one whose seats are being told of a change. The indexes over
// the two are written at a grant and at an end, and by no renewal.
//
// # Limits
//
// Firestore sustains about one write a second to one document. Leases under 3 s, renewed every
// third of that, exceed it; they may work for a while, but not reliably. The same holds for
// checkpoints and appends that come more often: a leader with much to append should do so in
// batches, of up to 500 entries. Different elections do not disturb each other, up to 500 changes
// of leader a second, which is Firestore's limit for documents with an index over an increasing
// field such as requestedAt and retireAt.
//
// # Setting up
//
// Collections are created with their first document. Firestore does not create these by itself, for
// the collection group events:
//
//	unannounced   ascending indexes: of scope collection group and of scope collection
//	requestedAt   an ascending index: of scope collection group
//	deleteAfter   a TTL policy, and no index
//
// and for the collection group segments:
//
//	deleteAfter   a TTL policy, and no index
//
// Firestore creates these indexes by itself, unless their fields are exempt, for the
// collection group leadership:
//
//	leaderId      an ascending index: of scope collection
//	retireAt      an ascending index: of scope collection
//
// The collections leadershipLogs and segments are read only by name and need no index: all their
// fields should be exempt, because an index over a text of 640 KiB costs money and is not used.
//
// All other fields of leadership and events may be exempt from indexing, and deleteAfter should be:
// an index over a time makes writes slower and more expensive, and is not used.
//
// renewalDue must be exempt: every renewal changes it, and would write two index entries over a
// time that only grows. Terraform exempts every field that is not named here.
//
// One more index makes looks into the outbox cheap if thousands of changes are announced in an
// hour: a composite one of unannounced and requestedAt, both ascending, of scope collection group.
// With it a look skips events announced long ago, whose index entries Firestore keeps for a while.
// Without it each look scans all of the outbox.
//
// The database may be "(default)" or have a name. Every call says which one in the headers
// google-cloud-resource-prefix and x-goog-request-params, as Google's front end requires it.
//
// # The emulator
//
// It takes no message of more than 4 MiB, while Firestore takes 10.
//
// It shows the documents of one commit one after the other, while Firestore shows all at once. A
// record that does not fit its history is therefore read a few more times before it counts as
// corrupt; a sound record costs one read. The emulator needs no indexes, and deletes nothing by
// itself.
package firestore
