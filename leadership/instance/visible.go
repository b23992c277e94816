package instance

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"regent/leadership"
	"regent/leadership/wire"
)

// Span is the name of an election or, if it is open, all names that begin with it.
type Span struct {
	Name string
	Open bool
}

// ParseSpan reads the name of an election or, with a "*" at the end, the beginning of names.
func ParseSpan(text string) (Span, error) {
	name, open := strings.CutSuffix(text, "*")
	s := Span{name, open}
	return s, s.Validate()
}

// Validate returns why no election has such a name, as a sentence for the author of a setting.
func (s Span) Validate() error {
	if !s.Open {
		return leadership.Election(s.Name).Validate()
	}
	err := leadership.ValidatePrefix(s.Name)
	if refusal, ok := errors.AsType[*leadership.Error](err); ok { // whose code means nothing there
		return errors.New(refusal.Detail)
	}
	return err
}

// Covers reports whether the election is one of the span's.
func (s Span) Covers(e leadership.Election) bool { return s.covers(Span{Name: string(e)}) }

// within returns the part of the spans that begins with the prefix, in the order of names and each
// name once.
func within(spans []Span, prefix string) (parts []Span) {
	var cut []Span
	for _, s := range spans {
		switch {
		case strings.HasPrefix(s.Name, prefix):
			cut = append(cut, s)
		case s.Open && strings.HasPrefix(prefix, s.Name):
			cut = append(cut, Span{prefix, true})
		}
	}
	slices.SortFunc(cut, func(a, b Span) int {
		if a.Name == b.Name && a.Open != b.Open {
			return map[bool]int{true: -1, false: 1}[a.Open]
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, s := range cut {
		if n := len(parts); n == 0 || !parts[n-1].covers(s) {
			parts = append(parts, s)
		}
	}
	return parts
}

func (s Span) covers(other Span) bool {
	return s == other || s.Open && strings.HasPrefix(other.Name, s.Name)
}

// before reports whether all names of the span come before the name or are it.
func (s Span) before(name leadership.Election) bool {
	return string(name) >= s.Name && !(s.Open && strings.HasPrefix(string(name), s.Name))
}

// enoughReads is after how many reads a page is sent that is not full.
const enoughReads = 64

// visible reads a page of what the caller may see. It reads only names that the caller's rights
// cover, so that neither the cost of a call nor its duration depends on hidden elections. An empty
// page, or one that continues after a hidden name, would reveal one too: it reads on until there is
// something to show.
func (g *Guarded) visible(ctx context.Context, r leadership.ListRequest) (leadership.Page, error) {
	op := Op{Row: g.rows[wire.VerbList]}
	most := cmp.Or(r.Limit, leadership.DefaultPageSize)
	reads := 0
	var kept []leadership.Lease
	for _, span := range within(g.filters[0].Spans(ctx, op), r.Prefix) {
		if span.before(r.After) {
			continue
		}
		part := leadership.ListRequest{Prefix: span.Name, After: r.After}
		for more := true; more; reads++ {
			if len(kept) > 0 && reads >= enoughReads {
				return leadership.Page{Leases: kept, Next: kept[len(kept)-1].Election}, nil
			}
			if part.Limit = 1; span.Open {
				part.Limit = min(most-len(kept)+1, leadership.MaxPageSize) // one more, to know whether any follow
			}
			page, err := g.service.List(ctx, part)
			if err != nil {
				return leadership.Page{}, err
			}
			for _, l := range page.Leases {
				if span.Covers(l.Election) && g.shows(ctx, op, l.Election) {
					kept = append(kept, l)
				}
			}
			if len(kept) > most {
				return leadership.Page{Leases: kept[:most], Next: kept[most-1].Election}, nil
			}
			part.After, more = page.Next, span.Open && page.Next != ""
		}
	}
	return leadership.Page{Leases: kept}, nil
}

// shows reports whether no filter hides the election.
func (g *Guarded) shows(ctx context.Context, op Op, e leadership.Election) bool {
	return !slices.ContainsFunc(g.filters, func(f Filter) bool { return !f.Visible(ctx, op, e) })
}
