package authz

import (
	"context"
	"slices"

	"regent/httpapi/access/authn"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// Knock refuses a caller that no grant names, before the body of its call is read.
func (g *Gate) Knock(ctx context.Context, op instance.Op) (context.Context, error) {
	who, known := authn.From(ctx)
	if !known || !g.policy().names(who) {
		g.record(ctx, who, op, Record{Code: wire.PermissionDenied})
		return nil, denied(who, op)
	}
	return ctx, nil
}

// names reports whether a grant is for the principal.
func (p *Policy) names(who authn.Principal) bool {
	return slices.ContainsFunc(p.grants, func(g grant) bool { return g.isFor(who) })
}
