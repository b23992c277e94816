// Package file keeps elections in one local file, through go.etcd.io/bbolt: the store for one
// machine, and the default.
//
// # Durability
//
// One goroutine writes. It takes whatever calls are waiting, decides each in turn, commits them
// together (one transaction, made durable by fdatasync before any of them is answered), and answers
// all. So a call costs its share of a commit, and the more callers there are, the smaller that
// share. If a commit fails, nothing more is read or written until the file is opened again: what
// the disk holds is not known then.
//
// # Time
//
// The store's clock is the machine's boot-time clock, which cannot be set and which, on Linux, runs
// while the machine is suspended. It is kept with the id of the boot: after another boot its
// readings mean nothing, so every lease that ran at the last commit then counts as just renewed,
// every lock delay as just begun, and every latest end of a lease stays as far away as it was. The
// wait is one full lease: never too short. Where the operating system has no boot id, that happens
// at each start. The wall clock is read once per boot, only to give instants a date, for people and
// for Policy.RetireAfter, which counts the time between two boots by those dates.
//
// # File
//
//	meta        schema, boot, anchor (the instant of boot), now (of the last commit), pruned
//	            (time of the newest event that was deleted), digest (of all that is in the file
//	            but itself, and the transaction that left it so)
//	leadership  election              -> record, without its last heartbeat
//	heartbeats  election              -> instant of the last heartbeat
//	events      election 0 revision   -> event
//	outbox      election 0 revision   -> nothing; an event that is not announced yet
//	times       instant and event key -> nothing; the events of all elections in the order of time
//
// Heartbeats stand apart because they are nearly all that is ever written.
//
// The schema is the version of the file. In version 3 records have a policy, a standing and a
// latest end of the lease, and events an actor, a reason and a detail. A file of version 2 is of
// version 3 from when it is opened, which the programs before refuse. Records and events have a
// version of their own: those of the version before are read, and records are rewritten when they
// change.
//
// # Damage
//
// A file is refused, by name, unless it is what was committed last: granting nothing is better than
// granting a token twice. When the file is opened, both meta pages are compared with their
// checksums, every other page in use has to be where it should be, once, with its keys in order and
// between those of the branch above, and then all keys and values have to add up to the digest. So
// no value may be changed, missing, doubled or older than the file. Every value also carries a
// checksum over its key and itself, for damage that comes later: a value that fails it when it is
// read is refused then, alone.
//
// A file that is older as a whole cannot be detected, such as a backup, or a file that lost the
// write of the newer meta page. Restoring a backup therefore includes raising its tokens.
//
// One process has the file at a time. Its mode is 0600, and it belongs to the process's user: a
// file that another user could read or change is refused. It does not shrink.
//
// # History
//
// An event is kept for Config.History. Each change to an election deletes those of its events that
// are older, the oldest first and a hundred at most, announced or not. The newest always stays: the
// record is compared with it. An election that no longer changes keeps what it has. The space is
// used again.
package file
