package limit

import (
	"context"
	"sync/atomic"

	"golang.org/x/time/rate"

	"regent/httpapi/access/authn"
	"regent/leadership/instance"
)

// prepaidKey is of the context of a call that Admit has taken one for: a *prepaid.
type prepaidKey struct{}

type prepaid struct {
	from *rate.Limiter
	left atomic.Int32
}

// Admit takes one from the caller's bucket before the body of its call is read, so that a malformed
// body costs its sender as much as any other. Enter, with the context that Admit returns, takes the
// rest.
func (g *Gate) Admit(ctx context.Context, op instance.Op) (context.Context, error) {
	who, _ := authn.From(ctx)
	perSecond, bucket := g.accounts.of(who.String()).rate(op.Cost)
	if after, ok := take(bucket, 1, 0); !ok {
		return nil, g.refuse(ctx, false, after, tooOften(op), perSecond)
	}
	paid := &prepaid{from: bucket}
	paid.left.Store(1)
	return context.WithValue(ctx, prepaidKey{}, paid), nil
}

// paid returns what Admit has taken from the bucket for the call, once.
func paid(ctx context.Context, bucket *rate.Limiter) int {
	if paid, ok := ctx.Value(prepaidKey{}).(*prepaid); ok && paid.from == bucket {
		return int(paid.left.Swap(0))
	}
	return 0
}
