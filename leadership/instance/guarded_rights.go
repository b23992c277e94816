package instance

import (
	"context"
	"errors"
	"fmt"

	"regent/leadership"
	"regent/leadership/wire"
)

// Registrar is a Gate that knows which candidates may lead.
type Registrar interface {
	Gate
	// MayLead reports whether any known caller may make the op, an acquire; if the candidate is the
	// context's caller's own, whether that caller may. It reports true if that cannot be known.
	MayLead(ctx context.Context, op Op) bool
}

// Explain implements Protocol. The first reason is RIGHTS if a gate would not let the candidate
// lead.
func (g *Guarded) Explain(ctx context.Context, r leadership.ExplainRequest) (leadership.Explanation, error) {
	x, err := guarded(ctx, g, wire.VerbExplain, Op{Election: r.Election, N: 1}, g.service.Explain, r)
	g.answered(ctx, wire.VerbExplain, x.Reads*strongRead)
	if err != nil {
		return x, err
	}
	var causes []leadership.Cause
	if !g.mayLead(ctx, r) {
		causes = append(causes, leadership.Cause{Code: leadership.ReasonRights})
	}
	open := g.may(ctx, wire.VerbOverrides, Op{Election: r.Election})
	for _, c := range x.Causes {
		if !open {
			c = withoutOrder(c)
		}
		causes = append(causes, c)
	}
	x.Causes = causes
	return x, nil
}

// strongRead is how many records of an answer are charged for one strong read, which costs as much
// as a call.
const strongRead = 20

func (g *Guarded) mayLead(ctx context.Context, r leadership.ExplainRequest) bool {
	op := Op{Row: g.rows[wire.VerbAcquire], Election: r.Election, Candidate: r.CandidateID}
	for _, gate := range g.gates {
		if registrar, ok := gate.(Registrar); ok && !registrar.MayLead(ctx, op) {
			return false
		}
	}
	return true
}

// may reports whether the gates would let the caller make another call.
func (g *Guarded) may(ctx context.Context, verb wire.Verb, op Op) bool {
	op.Row = g.rows[verb]
	return g.recheck(ctx, op) == nil
}

// recheck asks the gates once more.
func (g *Guarded) recheck(ctx context.Context, op Op) error {
	for _, gate := range g.gates {
		if again, ok := gate.(Rechecker); ok {
			if err := again.Recheck(ctx, op); err != nil {
				return err
			}
		}
	}
	return nil
}

// withoutOrder removes from a cause everything about the order behind it.
func withoutOrder(c leadership.Cause) leadership.Cause {
	c.Override, c.Actor, c.Because, c.Pattern, c.Elections, c.Principal = "", "", "", "", "", ""
	return c
}

// discreet returns the error of a call as its caller may see it: only callers that may read the
// overrides are told the order behind a refusal.
func (g *Guarded) discreet(ctx context.Context, e leadership.Election, err error) error {
	refusal, ok := errors.AsType[*leadership.Error](err)
	if !ok || refusal.Cause == nil || refusal.Cause.Override == "" || g.may(ctx, wire.VerbOverrides, Op{Election: e}) {
		return err
	}
	kept := *refusal
	kept.Cause = new(withoutOrder(*refusal.Cause))
	kept.Detail = fmt.Sprintf("election %q is not granted to the candidate now, by an order (%s); ask an operator which, or try again later", e, refusal.Reason)
	return &kept
}

// May reports whether the gates would admit a call of the caller about the election; "" for a call
// about all elections. It leaves no record, and counts against no limit.
func (g *Guarded) May(ctx context.Context, verb wire.Verb, e leadership.Election) bool {
	return g.may(ctx, verb, Op{Election: e})
}

// Covered returns the names, and patterns of names, of the elections for which May may be true; "*"
// for all.
func (g *Guarded) Covered(ctx context.Context, verb wire.Verb) []leadership.Election {
	if len(g.filters) == 0 {
		return []leadership.Election{"*"}
	}
	return g.filters[0].Covered(ctx, Op{Row: g.rows[verb]})
}
