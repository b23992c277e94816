// Package service runs the rules of package rule in the transactions of a Store. It checks
// requests, fills in defaults, looks up what a rule needs to know of other elections, and tells
// publishers of what was committed. A Ledger does so for what a leader leaves behind.
//
// Its tests are those of the rules, in package rule, which are played through a Service as well,
// and those of every store, in package store/storetest.
//
// # What a leader leaves behind
//
// A Ledger keeps two logs for each election beside its record, in the Journal of the same store: a
// checkpoint, which is replaced as a whole, and a journal, to which entries are appended. A log is
// guarded by a mark of its own, the highest token that has opened it, with the key of that leader:
//
//	open     a strong read verifies the lease; then the mark is raised, if no higher one is there
//	write    only under the mark, without a read of the lease
//
// So a new leader opens the log before it reads it. What it reads is complete: whatever its
// predecessor sends afterwards is refused with TokenStale. Until then a paused leader may still
// write, which harms nothing, because the next leader reads it. A log outlives releases, deletions
// and moves. A store that was restored raises the marks together with the tokens; what was appended
// since the backup is lost, so followers of a journal start anew then.
//
// An append names the index that it follows, and is all or nothing. The same append again has the
// same answer as long as it is the last one. A snapshot stands for all entries up to an index that
// the journal has, and they are deleted; a reader of them is told where to start
// (HistoryCompacted).
package service
