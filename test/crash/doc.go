// Package crash tries whether the embedded store's file survives: whatever was acknowledged is there after any crash; a damaged
// file is refused by name, and grants nothing.
//
// # How
//
// bbolt writes to its file itself, and lets nobody come in between. So the unmodified store is watched from outside: a tracer sees,
// in their order, each system call of a process that changes a file or makes it durable, with its contents, and each line that the
// process says to the outside. The process is a writer that makes calls through leadership.Service, several at a time, and says
// each call before it is made and each answer when it has come. What was on the disk and what was acknowledged is told by one log.
//
//	writer --calls--> service --> store/bolt --pwrite, fdatasync, ...--> file
//	   |                                            |
//	   +--says: asked, told-----------------> tracer: one log --> disk --> images --> judge
//	                                                   |                               ^
//	                                                   +--> truth ---------------------+
//
// From the log a disk is modelled, that knows of each write whether it is durable, and of it the images that crashes leave:
//
//	killed     everything up to some moment is there
//	cut        of what was not durable any part is lost, or comes in another order
//	torn       and the last write of it ends at some sector
//
// A judge opens each image as any user does, and holds it to the truth, which is told from the answers and from nothing else. It
// must be the store as it was behind one of its commits: none that had been acknowledged may be missing, none may be there that
// nobody had asked for yet, and none in part. A stranger then asks for each lease, in the boot of the writer or in another, and
// must be refused what is not free.
//
// Then the disk itself is bad. A file in which a bit is flipped, a page is zeroed or is what it was before, or that ends too early,
// must be refused by name, when it is opened or when the part is read, or be right. And for each call that a short run of the
// writer makes there is a run in which that call fails, or a write ends half way; a failure to make something durable leaves it in
// doubt for ever, whatever is said of it later. Nothing may be answered after the store has failed, and what is left must be right
// again. Last, the disk is too small.
//
// # What it cannot tell
//
// That one of the file's two meta pages is what it was before, which makes the whole file what it was: only somebody outside of the
// file could. That the store's map of the file grows, at 64 MiB.
//
// Processes can be watched on Linux, on amd64 and arm64.
package crash
