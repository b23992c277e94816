package authz

import (
	"context"

	"regent/httpapi/access/authn"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// Admit refuses a caller that no grant lets make the call at all, as any candidate, before the body
// of the call is read.
func (g *Gate) Admit(ctx context.Context, op instance.Op) error {
	who, known := authn.From(ctx)
	if !known || !g.policy().permits(who, op) {
		g.record(ctx, who, op, Record{Code: wire.PermissionDenied})
		return denied(who, op)
	}
	return nil
}
