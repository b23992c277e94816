package authz

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"regent/httpapi/access/authn"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// Record is the audit record of a call that was refused, that needs a verifier, an operator or an
// admin, or that made its caller a leader.
type Record struct {
	Principal string
	Verb      wire.Verb
	Election  leadership.Election    // "" if the call is not about one
	Candidate leadership.CandidateID // if the call is made as a candidate
	Token     leadership.Token       // of the lease that an acquire was answered with
	Code      leadership.Code        // why it was not done; "" if it was
	Reason    string                 // of an operator or a verifier, for its call
	Stranger  bool                   // it was refused, and no grant names the principal, but for "*"
	Parts     int                    // of a batch: how many of its parts were refused; Election is that of the first
	RequestID string
}

// Gate is an instance.Filter that admits the calls that the access file allows. The caller is the
// principal of the context; without one, every call is refused. It decides before the store is
// read, so that a caller without rights cannot tell whether an election exists.
type Gate struct {
	access func() *Access
	audit  func(context.Context, Record)
}

// NewGate returns a Gate. It calls access at each call, and audit for each Record; both may be
// called from many goroutines.
func NewGate(access func() *Access, audit func(context.Context, Record)) *Gate {
	return &Gate{access, audit}
}

// Enter implements instance.Gate. The parts of a batch are decided separately; those that are
// refused leave one Record together.
func (g *Gate) Enter(ctx context.Context, op instance.Op) (done func(error), err error) {
	who, _ := authn.From(ctx)
	if op.Parts != "" {
		return func(error) {
			if n := op.Batch.Refused; n > 0 {
				op.Election = op.Batch.First
				g.record(ctx, who, op, Record{Code: wire.PermissionDenied, Parts: n})
			}
		}, nil
	}
	if err := g.Recheck(ctx, op); err != nil {
		if op.Batch != nil {
			op.Batch.Note(op.Election)
			return nil, err
		}
		g.record(ctx, who, op, Record{Code: codeOf(err)})
		return nil, err
	}
	if !op.Audited {
		return nil, nil
	}
	return func(err error) { g.record(ctx, who, op, Record{Code: codeOf(err)}) }, nil
}

// Admit refuses, before the body of a call is read, a caller that no grant allows the call, as any
// candidate.
func (g *Gate) Admit(ctx context.Context, op instance.Op) error {
	who, known := authn.From(ctx)
	if !known || !g.access().permits(who, op) {
		g.record(ctx, who, op, Record{Code: wire.PermissionDenied})
		return denied(who, op)
	}
	return nil
}

// Recheck implements instance.Rechecker. It leaves no Record.
func (g *Gate) Recheck(ctx context.Context, op instance.Op) error {
	who, known := authn.From(ctx)
	access := g.access()
	if !known || !access.allows(who, op) {
		return denied(who, op)
	}
	if op.Lease == 0 {
		return nil
	}
	if most := access.longest(who, op); most > 0 && op.Lease > most {
		return &leadership.Error{Code: leadership.InvalidArgument, Field: "leaseDuration", Detail: fmt.Sprintf(
			"%s may ask for a lease of %v at most on election %q, as the access file says, not %v; ask for less, or for none to get what the election is configured for",
			who, most, op.Election, op.Lease)}
	}
	return nil
}

// MayLead implements instance.Registrar. A candidate id that is the caller's own name is judged by
// the caller's grants, and any other by those of all principals.
func (g *Gate) MayLead(ctx context.Context, op instance.Op) bool {
	if who, known := authn.From(ctx); known && isOwn(who.String(), op.Candidate) {
		return g.access().allows(who, op)
	}
	return slices.ContainsFunc(g.access().grants, func(grant grant) bool { return grant.mayLead(op) })
}

// Granted implements instance.Witness: it leaves a Record of each acquire that was answered with a
// lease. Renewals leave none.
func (g *Gate) Granted(ctx context.Context, op instance.Op, grant leadership.Grant) {
	who, _ := authn.From(ctx)
	op.Election = grant.Election // may be a seat of the requested election
	g.record(ctx, who, op, Record{Token: grant.Token})
}

// codeOf returns the code of an error, and "" for none.
func codeOf(err error) (code leadership.Code) {
	if err != nil && !errors.As(err, &code) {
		return wire.Internal
	}
	return code
}

func (g *Gate) Visible(ctx context.Context, op instance.Op, e leadership.Election) bool {
	who, known := authn.From(ctx)
	op.Election = e
	return known && g.access().allows(who, op)
}

func (g *Gate) Covered(ctx context.Context, op instance.Op) []leadership.Election {
	who, _ := authn.From(ctx)
	return g.access().covered(who, op)
}

// record completes a Record of the call, and passes it to audit.
func (g *Gate) record(ctx context.Context, who authn.Principal, op instance.Op, r Record) {
	r.Stranger = r.Code == wire.PermissionDenied && !g.access().names(who)
	r.Principal, r.Verb, r.RequestID = who.String(), op.Verb, leadership.RequestID(ctx)
	r.Election, r.Candidate, r.Reason = short(op.Election), short(op.Candidate), short(op.Reason)
	g.audit(ctx, r)
}

// short returns an unchecked text of the caller, or its beginning.
func short[S ~string](s S) S {
	return S(strings.ToValidUTF8(string(s[:min(len(s), leadership.MaxReasonBytes)]), ""))
}

// denied returns the same error whether the election exists or not.
func denied(who authn.Principal, op instance.Op) error {
	var about string
	switch {
	case op.Candidate != "":
		about = fmt.Sprintf(" on election %q as %q", op.Election, op.Candidate)
	case op.Election != "":
		about = fmt.Sprintf(" on election %q", op.Election)
	case op.Scope == wire.ScopePrefix:
		about = fmt.Sprintf(" with the prefix %q", op.Prefix)
	}
	return &leadership.Error{Code: wire.PermissionDenied, Detail: fmt.Sprintf(
		"%s may not call %s%s; an operator of this service can grant it in the access file", who, op.Verb, about)}
}
