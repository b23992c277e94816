// Package logs keeps, for stores in memory, a log's head, snapshot and segments.
package logs

import (
	"cmp"
	"slices"

	"regent/leadership"
	"regent/leadership/rule"
)

// Log is a log as it is stored. Copies of a Log share segments, except those changed in one of
// them.
type Log struct {
	Head     rule.Log
	Snapshot rule.Segment
	Segments []rule.Segment // in order
}

// Put puts a segment in its place. It changes no segment that another copy of the log has.
func (l *Log) Put(s rule.Segment) {
	at := l.Behind(s.First - 1)
	switch {
	case s.First == 0:
		l.Snapshot = s
	case at == len(l.Segments):
		l.Segments = append(l.Segments, s)
	case l.Segments[at].First == s.First:
		l.Segments = slices.Clone(l.Segments)
		l.Segments[at] = s
	default:
		l.Segments = slices.Insert(slices.Clone(l.Segments), at, s)
	}
}

// Trim deletes the segments up to the index. It reports whether there were any.
func (l *Log) Trim(upTo leadership.Index) bool {
	at := l.Behind(upTo)
	l.Segments = slices.Clone(l.Segments[at:]) // so that the memory of the deleted ones is freed
	return at > 0
}

// Behind returns the position of the first segment with an entry after the index.
func (l *Log) Behind(after leadership.Index) int {
	at, _ := slices.BinarySearchFunc(l.Segments, after, func(s rule.Segment, i leadership.Index) int {
		return cmp.Compare(s.Last, i+1)
	})
	return at
}

// Page returns the segments with an entry after the index; see service.Journal.Segments.
func (l *Log) Page(after leadership.Index, limit int) (found []rule.Segment) {
	size := 0
	for _, segment := range l.Segments[l.Behind(after):] {
		if size += len(segment.Data); len(found) >= limit || size > leadership.MaxReadBytes && len(found) > 0 {
			break
		}
		found = append(found, segment)
	}
	return found
}

// After returns up to limit of the logs that come after the given one, in order. It changes ids.
func After(ids []rule.LogID, after rule.LogID, limit int) []rule.LogID {
	ids = slices.DeleteFunc(ids, func(id rule.LogID) bool { return id.Compare(after) <= 0 })
	slices.SortFunc(ids, rule.LogID.Compare)
	return ids[:min(len(ids), max(limit, 0))]
}
