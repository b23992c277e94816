// Package service runs the rules of package rule in the transactions of a Store. It checks
// requests, fills in defaults, reads the other elections that a rule needs, and passes committed
// events to publishers. A Ledger does the same for checkpoints, journals, effects and proposals.
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
// So a new leader opens the log before it reads it. What it reads is complete: all later writes of
// its predecessors are refused with TokenStale. Until then a paused leader may still write, which
// is harmless, because the next leader reads it. A log outlives releases, deletions and moves.
// After a restore the marks are raised together with the tokens; entries appended since the backup
// are lost, so followers of a journal start anew.
//
// An append names the index that it follows, and is all or nothing. Repeating the last append gives
// the same answer. A snapshot replaces all entries up to an index of the journal, and they are
// deleted; a reader of them is told where to start (HistoryCompacted).
package service
