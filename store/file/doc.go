// Package file keeps elections in a folder of one machine: the store for one process, and the
// default.
//
// All records and their history are in memory. A log in the folder has every commit; occasional
// snapshots keep the log short.
//
// # Durability
//
// One goroutine writes. It takes the calls that wait, decides each in turn, writes their changes as
// one frame of the log, makes it durable (one write, one fdatasync), changes the tables in
// memory, and answers all. So a call costs its share of a commit, and the more callers there are,
// the smaller that share. A read sees the tables, and so only durable data.
//
// If a commit fails, nothing more is read or written until the folder is opened again, because the
// content of the disk is not known.
//
// # Time
//
// The store's clock is the machine's boot-time clock, which cannot be set and which, on Linux, runs
// while the machine is suspended. It is kept with the id of the boot: after another boot its
// readings mean nothing, so every lease that ran at the last commit then counts as just renewed,
// every lock delay as just begun, and every limit of a term stays as far away as it was. The wait
// is one full lease: never too short. If the operating system has no boot id, that happens at each
// start.
//
// The wall clock is read once per boot. It decides how far the store's time moves on between two
// boots: never back, and ahead without a limit. No lease depends on that, but everything with a
// date does: halts, pauses, bans and other orders, cooldowns, counts within an hour or a day,
// Policy.RetireAfter, and the age of events. A wall clock that is years ahead at a boot ends these
// for good, because the store's time does not go back at the next boot either. Open logs a warning
// if the time has moved on by more than 30 days.
//
// # Folder
//
//	state                 whether the store was closed, and after which commit
//	log-0000000001        frames, one for each commit
//	snapshot-0000000002   all tables as they were when log 2 began; there is none before log 2
//	*.new                 a file that is being written; removed when the folder is opened
//
// Its mode is 0700, it belongs to the process's user, and it is locked while it is open: one
// process serves it at a time. It may be copied while no process has it open.
//
// Numbers are big-endian. Every file begins with 48 bytes:
//
//	 0  8  "regent" and the kind of the file: "LG", "SN" or "ST"
//	 8  4  version of the format: 1
//	12 16  id of the store, random, the same in all its files
//	28  8  number of the log or snapshot; in state 1 if the store was closed, else 0
//	36  8  sequence of the last commit before the log, in the snapshot, or before the close
//	44  4  CRC-32C of the bytes before
//
// In logs and snapshots, frames follow, each at the next multiple of 16:
//
//	 0  4  length of the payload
//	 4  8  sequence: that of the commit, one more than the one before, in all logs; in a snapshot
//	       the frames count from 1
//	12  4  CRC-32C of id, length and sequence
//	16  n  payload
//	    4  CRC-32C of id, sequence and payload
//	    1  0xff
//
// So a header lies within one sector of 512 bytes, and a frame has no sector that is all zeros (an
// event whose texts could make one is not written). Between the frames are zeros.
//
// A payload is the commit's instant and then entries: a byte that says which, and its fields.
// Numbers are varints, texts have their length before them, instants are seconds and nanoseconds.
//
//	1 record     election, its fields, policy and standing as text   replaces the one before
//	2 heartbeat  election, instant                                   changes the record
//	3 event      election, revision, …                               the next of its election
//	4 announced  election, revision                                  of one event
//	5 waiting    election, number of revisions, revisions            all that are not announced
//	6 forgotten  election, revision                                  all events up to that one
//	7 boot       id, instant of the boot
//	8 forgotten  instant                                             of the newest such event
//	9 page       compressed events, in the order of commits          (5, 8, 9 in snapshots)
//	10 end       the log goes on in the next one; or the snapshot is complete
//	11 log       election, kind, instant, text, body                 replaces its head
//	12 segment   election, kind, first, last, instant, data          replaces one with that first
//	13 trimmed   election, kind, index                               all segments up to it
//
// A log is filled with zeros in advance, a mebibyte at a time, which is synced before a frame is
// written there. So a commit changes no metadata, and the length of a log is a multiple of a
// mebibyte.
//
// # Checkpoint
//
// When a log has more than 16 MiB, and more than the last snapshot, the writer makes the next log,
// ends this one with an "end", and goes on. A goroutine writes the tables of that moment as
// snapshot-N.new, makes it durable, renames it, and then removes older logs and snapshots. If that
// fails, nothing is lost: the older files stay, and the next log's end is the next attempt. Close
// returns that error.
//
// # Damage
//
// A folder is refused, by name, unless it has the last commit: granting nothing is better than
// granting a token twice. When it is opened, the newest snapshot and all logs from that number on
// are read: ids and versions must be right, sequences without a gap, every checksum right, every
// entry readable to its last byte, and every padding zero. A missing file is noticed by the "end"
// of the previous log, or by the number of the snapshot; missing commits at the end of a log also
// by the sequence in the next one's head.
//
// Only one fault is repaired: a power cut can leave the last frame of the last log written in part.
// It was never acknowledged, so it is overwritten with zeros. A frame counts as torn if its header
// is whole and one of its later sectors is still all zeros, or if its first sector is all zeros and
// a later one is not; and if nothing follows it. A bad frame whose sectors were all written is
// damaged, not torn, and so is a frame in one sector, or one with a wrong header.
//
// After Close the file "state" has the sequence of the last commit, and the logs must end exactly
// there: then no tail can be missing. The file exists before the first commit, and is changed
// before the next commit after a Close.
//
// A folder that is older as a whole cannot be detected, such as a backup, or one whose disk lost
// the last write before a crash. Restoring a backup therefore includes raising its tokens.
//
// # History
//
// An event is kept for Config.History. Each change to an election deletes its older events, oldest
// first and at most a hundred, announced or not. The newest always stays, because the record is
// compared with it. An election that no longer changes keeps its events. In memory, events are
// compressed in pages of 256, in the order of their commits.
//
// # Checkpoints and journals
//
// An append to a journal, or a put of a checkpoint, is a call like any other and shares a commit
// with the waiting renewals. A commit that has reached 4 MiB takes no further call. All segments
// that were not trimmed are in memory, uncompressed, and in every snapshot of the folder: a leader
// that appends must also put snapshots of its journal, which delete the earlier entries. Otherwise
// the journal takes ever more memory.
package file
