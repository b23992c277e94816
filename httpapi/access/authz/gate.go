package authz

import (
	"context"
	"errors"
	"fmt"

	"regent/httpapi/access/authn"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// Record is what an audit log keeps of a call that was refused, or that needs an operator.
type Record struct {
	Principal string
	Verb      wire.Verb
	Election  leadership.Election    // "" if the call is not about one
	Candidate leadership.CandidateID // of a call that is made as one
	Code      leadership.Code        // why it was not done; "" if it was
	RequestID string
}

// Gate is an instance.Filter that lets in what the policy allows. The caller is the principal of
// the context; without one, everything is refused. It asks the policy before anything is read, so
// that a stranger cannot tell an election that exists from one that does not.
type Gate struct {
	policy func() *Policy
	audit  func(context.Context, Record)
}

// NewGate returns a Gate. It calls policy at each call, and audit for each Record; both may be
// called from many goroutines.
func NewGate(policy func() *Policy, audit func(context.Context, Record)) *Gate {
	return &Gate{policy, audit}
}

// Enter implements instance.Gate. The parts of a batch ask by themselves.
func (g *Gate) Enter(ctx context.Context, op instance.Op) (done func(error), err error) {
	if op.Parts != "" {
		return nil, nil
	}
	who, known := authn.From(ctx)
	if !known || !g.policy().allows(who, op) {
		g.record(ctx, who, op, wire.PermissionDenied)
		return nil, denied(who, op)
	}
	if !op.Audited {
		return nil, nil
	}
	return func(err error) {
		var code leadership.Code
		if err != nil && !errors.As(err, &code) {
			code = wire.Internal
		}
		g.record(ctx, who, op, code)
	}, nil
}

// Visible implements instance.Filter.
func (g *Gate) Visible(ctx context.Context, op instance.Op, e leadership.Election) bool {
	who, known := authn.From(ctx)
	op.Election = e
	return known && g.policy().allows(who, op)
}

func (g *Gate) record(ctx context.Context, who authn.Principal, op instance.Op, code leadership.Code) {
	g.audit(ctx, Record{
		Principal: who.String(), Verb: op.Verb, Election: op.Election, Candidate: op.Candidate, Code: code, RequestID: leadership.RequestID(ctx),
	})
}

// denied returns the same error whether the election exists or not.
func denied(who authn.Principal, op instance.Op) error {
	var about string
	switch {
	case op.Candidate != "":
		about = fmt.Sprintf(" election %q as %q", op.Election, op.Candidate)
	case op.Election != "":
		about = fmt.Sprintf(" election %q", op.Election)
	case op.Scope == wire.ScopePrefix:
		about = fmt.Sprintf(" with the prefix %q", op.Prefix)
	}
	return &leadership.Error{Code: wire.PermissionDenied, Detail: fmt.Sprintf(
		"%s may not %s%s; an operator of this service can grant it in the policy", who, op.Verb, about)}
}
