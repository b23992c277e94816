// Package crash tests that the embedded store's file survives: whatever was acknowledged is there
// after any crash; a damaged file is refused by name, and grants nothing.
//
// # How
//
// bbolt writes to its file itself and has no hook for a test. So the unmodified store is watched
// from outside: a tracer sees, in order, each system call of a process that changes a file or makes
// it durable, with its data, and each line that the process prints. The process is a writer that
// makes calls through leadership.Service, several at a time, and prints each call before it is made
// and each answer when it has come. So one log has both what was on the disk and what was
// acknowledged.
//
//	writer --calls--> service --> store/file --pwrite, fdatasync, ...--> file
//	   |                                            |
//	   +--prints: asked, told---------------> tracer: one log --> disk --> images --> check
//	                                                   |                               ^
//	                                                   +--> truth ---------------------+
//
// A model of the disk is made from the log. It knows of each write whether it is durable, and makes
// the images that crashes leave:
//
//	killed     everything up to some moment is there
//	cut        any part of what was not durable is lost, or comes in another order
//	torn       and the last write of it ends at some sector
//
// Each image is opened as any user opens it, and compared with the truth, which comes from the
// answers alone. It must be the store as it was after one of its commits: no acknowledged one may
// be missing, none may be there that was not requested yet, and none in part. Another candidate
// then asks for each lease, in the writer's boot or in another one, and must be refused every lease
// that is not free.
//
// Then the disk itself is bad. A file in which a bit is flipped, a page is zeroed or has an earlier
// content, or that ends too early, must be refused by name, when it is opened or when that part is
// read, or be right. For each call that a short run of the writer makes there is a run in which
// that call fails, or in which a write ends half way; a failed sync leaves its data in doubt for
// ever, whatever is said of it later. Nothing may be answered after the store has failed, and what
// is left must be right again. Last, the disk is too small.
//
// # What it cannot find
//
// That one of the file's two meta pages has an earlier content, which makes the whole file an
// earlier one: nothing in the file can tell. That the store's map of the file grows, at 64 MiB.
//
// Processes can be traced on Linux, on amd64 and arm64.
package crash
