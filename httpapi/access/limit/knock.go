package limit

import (
	"context"
	"sync/atomic"

	"regent/httpapi/access/authn"
	"regent/leadership/instance"
)

// paidKey is of the context of a call that Knock has taken one for: an *atomic.Int32.
type paidKey struct{}

// Knock takes one from the caller's bucket before the body of its call is read, so that a malformed
// body costs its sender as much as any other. Enter, with the context that Knock returns, takes the
// rest.
func (g *Gate) Knock(ctx context.Context, op instance.Op) (context.Context, error) {
	who, _ := authn.From(ctx)
	perSecond, bucket := g.accounts.of(who).rate(op.Cost)
	if after, ok := take(bucket, 1, 0); !ok {
		return nil, g.refuse(ctx, false, after, tooOften(op), perSecond)
	}
	left := new(atomic.Int32)
	left.Store(1)
	return context.WithValue(ctx, paidKey{}, left), nil
}

// paid returns what Knock has taken for the call, once.
func paid(ctx context.Context) int {
	if left, ok := ctx.Value(paidKey{}).(*atomic.Int32); ok {
		return int(left.Swap(0))
	}
	return 0
}
