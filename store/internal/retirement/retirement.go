// Package retirement keeps, for stores in memory, which elections are due for a tick and when.
package retirement

import (
	"cmp"
	"slices"
	"time"

	"regent/leadership"
	"regent/leadership/rule"
)

// Plan has Record.DueAt of each election that has one.
type Plan map[leadership.Election]time.Time

// Set notes the instant at which the record is due, if it ever is.
func (p Plan) Set(r *rule.Record) {
	if at := r.DueAt(); at.IsZero() {
		delete(p, r.Election)
	} else {
		p[r.Election] = at
	}
}

// By returns up to limit elections that are due by the instant, those due for the longest time
// first.
func (p Plan) By(at time.Time, limit int) []leadership.Election {
	var due []leadership.Election
	for e, when := range p {
		if !when.After(at) {
			due = append(due, e)
		}
	}
	slices.SortFunc(due, func(a, b leadership.Election) int { return cmp.Or(p[a].Compare(p[b]), cmp.Compare(a, b)) })
	return due[:min(len(due), max(limit, 0))]
}
