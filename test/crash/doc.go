// Package crash tests that the local store survives: a commit that was acknowledged is there after
// any crash; a damaged folder is refused by name, and grants nothing.
//
// # How
//
// The store has no hooks for a test. So the unmodified store is watched from outside: a tracer
// sees, in order, each system call of a process that changes a file or a name in the folder or
// makes it durable, with its data, and each line that the process prints. The process is a writer
// that makes calls through service.Service, several at a time, and prints each call before it is
// made and each answer when it has come. So one log has both the changes of the disk and the
// answers.
//
//	writer --calls--> service --> store/file --pwrite, fdatasync, rename, ...--> folder
//	   |                                              |
//	   +--prints: asked, told-------------------> tracer: one log --> disk --> images --> check
//	                                                     |                               ^
//	                                                     +--> truth ---------------------+
//
// The writer is started three times on one folder. It makes checkpoints, with many calls under way;
// it is killed; it mends what a power cut has left of a commit and of a checkpoint; its log grows
// beyond its first mebibyte; and it is closed.
//
// A model of the disk is made from the log. It knows of each write, and of each name, whether it is
// durable: a sync settles what was done to that file before it began, and names are settled by a
// sync of the folder alone. From it come the images that crashes leave:
//
//	killed     everything up to some moment is there
//	cut        any part of the log that was not durable is lost, in whatever order the rest came
//	torn       and the last write of it ends at some sector, or lacks some of its sectors
//
// Each image is opened as any user opens it, and compared with the truth, which comes from the
// answers alone. It must be the store as it was after one of its commits: no acknowledged one may
// be missing, none may be there that was not requested yet, and none in part. So it is with the
// journal that each caller has, its head, segments and snapshot. Another candidate then asks for
// each lease, in the writer's boot or in another one, and must be refused every lease that is not
// free.
//
// Then the disk itself is bad. A bit of any file is flipped, a page zeroed; a file lacks one of its
// writes, is an older copy of itself, ends too early, or is missing; two files have each other's
// name. The folder must be refused by name, or be right. For each call that a short run of the
// writer makes there is a run in which that call fails, or in which a write ends half way; a failed
// sync leaves its data in doubt for ever, whatever a later sync says. Nothing may be answered after
// the store has failed, and the folder must then be right again.
//
// # What it cannot find
//
// That the last write to the newest log is missing, where the store was not closed: the folder is
// then the one of a crash before that commit, and nothing in it can tell them apart. So this write
// is not damaged as a whole: it is not taken away, its pages are not zeroed, and the newest log is
// neither an older copy nor cut off before it at the end of a step. Flipped bits it has. After a
// close nothing is left out, for the file "state" has the number of the last commit. That the
// folder is an older one as a whole cannot be told either.
//
// Processes can be traced on Linux, on amd64 and arm64.
package crash
