package instance

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"regent/leadership"
	"regent/leadership/wire"
)

// within returns the part of the names and patterns that begins with the prefix, in the order of
// names and each name once.
func within(all []leadership.Election, prefix string) (parts []leadership.Election) {
	var cut []leadership.Election
	for _, e := range all {
		switch begin, pattern := e.Pattern(); {
		case strings.HasPrefix(begin, prefix):
			cut = append(cut, e)
		case pattern && strings.HasPrefix(prefix, begin):
			cut = append(cut, leadership.Election(prefix+"*"))
		}
	}
	slices.SortFunc(cut, func(a, b leadership.Election) int { // a pattern before the name that it begins with
		x, _ := a.Pattern()
		y, _ := b.Pattern()
		return cmp.Or(strings.Compare(x, y), cmp.Compare(b, a))
	})
	for _, e := range cut {
		if n := len(parts); n == 0 || !parts[n-1].Covers(e) {
			parts = append(parts, e)
		}
	}
	return parts
}

// before reports whether the name, or all names of the pattern, come before another name or are it.
func before(e, name leadership.Election) bool {
	begin, pattern := e.Pattern()
	return string(name) >= begin && !(pattern && e.Covers(name))
}

const (
	// enoughReads is the number of reads after which a page is sent even if it is not full. Each
	// 100 elections count as one more read.
	enoughReads = 64
	// leastRead is the least number of elections to read at once after a read that showed none, for
	// many may be deleted.
	leastRead = 100
)

// visible reads a page of the elections that the caller may see, and adds to read how many it has
// read. It reads only names that the caller's rights cover, so that neither the cost of a call nor
// its duration depends on hidden elections. A page token that is a hidden name would reveal it, so
// visible reads on until there is another name. A page may be empty.
func (g *Guarded) visible(ctx context.Context, r leadership.ListRequest, read *int) (leadership.Page, error) {
	op := Op{Row: g.rows[wire.VerbList]}
	most := cmp.Or(r.Limit, leadership.DefaultPageSize)
	reads := 0
	var kept []leadership.Lease
	var last leadership.Election // all names up to this one are read; the next page comes after it
	for _, e := range within(g.filters[0].Covered(ctx, op), r.Prefix) {
		if before(e, r.After) {
			continue
		}
		begin, pattern := e.Pattern()
		part, least := leadership.ListRequest{Prefix: begin, After: r.After}, 1
		for more := true; more; reads += 1 + part.Limit/100 {
			if last != "" && reads >= enoughReads {
				return leadership.Page{Leases: kept, Next: last}, nil
			}
			if part.Limit = 1; pattern {
				part.Limit = min(max(most-len(kept)+1, least), leadership.MaxPageSize) // one more, to know whether any follow
			}
			page, err := g.service.List(ctx, part)
			if err != nil {
				return leadership.Page{}, err
			}
			if *read += len(page.Leases); page.Next != "" {
				*read += part.Limit - len(page.Leases) // those that are deleted
			}
			shown := len(kept)
			for _, l := range page.Leases {
				if e.Covers(l.Election) && g.shows(ctx, op, l.Election) {
					kept, last = append(kept, l), l.Election
				}
			}
			to := page.Next
			if !pattern {
				to = e
			}
			if to != "" && g.shows(ctx, op, to) {
				last = to
			}
			if len(kept) > most {
				return leadership.Page{Leases: kept[:most], Next: kept[most-1].Election}, nil
			}
			if len(kept) == shown {
				least = leastRead
			}
			part.After, more = page.Next, pattern && page.Next != ""
		}
	}
	return leadership.Page{Leases: kept}, nil
}

// shows reports whether no filter hides the election.
func (g *Guarded) shows(ctx context.Context, op Op, e leadership.Election) bool {
	return !slices.ContainsFunc(g.filters, func(f Filter) bool { return !f.Visible(ctx, op, e) })
}
