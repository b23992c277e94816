// Package bolt keeps elections in one local file, through go.etcd.io/bbolt: the store for one machine, and the default.
//
// # Durability
//
// One goroutine writes. It takes whatever calls are waiting, decides each in turn, commits them together (one transaction,
// made durable by fdatasync before anybody is answered), and answers all. So a call costs its share of a commit, and the
// more callers there are, the smaller that share. If a commit fails, nothing more is read or written until the file is opened
// again: what the disk holds is not known then.
//
// # Time
//
// The store's clock is the machine's boot-time clock, which nobody can set and which, on Linux, runs while the machine is suspended. It
// is kept with the id of the boot: after another boot its readings mean nothing, so every lease that ran at the last commit then counts as
// just renewed, and every lock delay as just begun. The wait is one full lease: never too short. Where the operating system has no boot
// id, that happens at each start. The wall clock is read once per boot, only to give instants a date that people can read.
//
// # File
//
//	meta        schema, boot, anchor (the instant of boot), now (of the last commit), pruned (time of the newest event that was deleted)
//	leadership  election              -> record, without its last heartbeat
//	heartbeats  election              -> instant of the last heartbeat
//	events      election 0 revision   -> event
//	outbox      election 0 revision   -> nothing; an event that is not announced yet
//	times       instant and event key -> nothing; the events of all elections as they followed each other
//
// Every value carries a checksum over its key and itself, so that a flipped bit in it is noticed when it is read. What bbolt keeps around the
// values is looked at when the file is opened: both meta pages by their checksums, and of every other page in use that it is where it
// should be, once, with its keys in order. What does not pass is refused. Heartbeats stand apart because they are nearly all that is ever written.
//
// One process has the file at a time. Its mode is 0600. It does not shrink.
//
// # History
//
// An event is kept for Config.History. Each change to an election deletes those of its events that are older, the oldest first and a
// hundred at most, announced or not; the newest always stays, for the record is held against it. An election to which nothing happens any more keeps
// what it has. The space is used again.
package bolt
