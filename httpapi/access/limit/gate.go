package limit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"regent/httpapi/access/authn"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// Gate is an instance.Gate that admits as many calls of each principal as its limits allow.
type Gate struct {
	accounts *accounts
	refused  func(ctx context.Context, quota bool)
}

// Config configures a Gate. Limits is required.
type Config struct {
	// Limits returns the limits of a principal. It may be called from many goroutines.
	Limits func(authn.Principal) Limits
	// Renewing and Asking are how many renewals, and how many other calls, may be in progress at
	// the same time; one principal may have half of them. Waiting candidates and streams do not
	// count. Zero means 256.
	Renewing, Asking int
	// Refused, if it is not nil, is called for each refused call. quota reports whether the
	// principal has exceeded a total, and not a rate.
	Refused func(ctx context.Context, quota bool)
}

const (
	defaultPlaces = 256
	// surveys is how many calls whose answers may have thousands of records a principal may have in
	// progress.
	surveys = 8
	// recordsPerCall is the number of records in an answer that cost as much as a call.
	recordsPerCall = 20
)

// New returns a Gate with no account yet.
func New(c Config) *Gate {
	renewing, asking := make(chan struct{}, cmp.Or(c.Renewing, defaultPlaces)), make(chan struct{}, cmp.Or(c.Asking, defaultPlaces))
	return &Gate{newAccounts(c.Limits, renewing, asking), c.Refused}
}

// Enter implements instance.Gate. A batch counts as a whole, for as many calls as it has parts.
func (g *Gate) Enter(ctx context.Context, op instance.Op) (done func(error), err error) {
	if op.N == 0 || op.Cost == "" {
		return nil, nil
	}
	who, _ := authn.From(ctx)
	a := g.accounts.of(who)
	perSecond, bucket := a.rate(op.Cost)
	calls, bytes := paid(ctx, bucket)
	if after, ok := take(bucket, op.N, calls); !ok {
		return nil, g.refuse(ctx, false, after, tooOften(op), perSecond)
	}
	if after, ok := take(a.bytes, max(op.Bytes+op.Entries*bytesPerEntry-bytes, 0), 0); !ok {
		return nil, g.refuse(ctx, false, after, tooMuch, a.limits.Bytes)
	}
	if op.Creates && !a.hasRoom(op.Election) {
		return nil, g.refuse(ctx, true, time.Minute, "you have used %d elections within a day, and may use no more; use those that you have, or delete some", a.limits.Elections)
	}
	leave, err := g.place(ctx, a, op)
	if err == nil && op.Verb == wire.VerbDelete {
		return func(err error) {
			leave(err)
			if err == nil {
				a.deleted(op.Election)
			}
		}, nil
	}
	if err != nil || !op.Creates {
		return leave, err
	}
	return func(err error) {
		leave(err)
		// The names of refused or invalid calls do not count: a caller could fill the memory with
		// them.
		if !errors.Is(err, wire.PermissionDenied) && !errors.Is(err, leadership.InvalidArgument) {
			a.use(op.Election)
		}
	}, nil
}

// prepaidKey is the context key of a *prepaid, for a call that Admit has charged.
type prepaidKey struct{}

// prepaid is the part of Admit's charge that Enter has not counted yet.
type prepaid struct {
	from        *rate.Limiter
	left, bytes atomic.Int32
}

// Admit takes one from the caller's bucket before the body of its call is read, so that a malformed
// body costs its sender as much as any other. For a body that may be large it also takes op.Bytes,
// because decoding is the most expensive thing that a caller can ask for. Enter, with the context
// that Admit returns, takes the rest.
func (g *Gate) Admit(ctx context.Context, op instance.Op) (context.Context, error) {
	who, _ := authn.From(ctx)
	a := g.accounts.of(who)
	perSecond, bucket := a.rate(op.Cost)
	if after, ok := take(bucket, 1, 0); !ok {
		return nil, g.refuse(ctx, false, after, tooOften(op), perSecond)
	}
	paid := &prepaid{from: bucket}
	paid.left.Store(1)
	if op.Large {
		if after, ok := take(a.bytes, op.Bytes, 0); !ok {
			return nil, g.refuse(ctx, false, after, tooMuch, a.limits.Bytes)
		}
		paid.bytes.Store(int32(op.Bytes))
	}
	return context.WithValue(ctx, prepaidKey{}, paid), nil
}

// paid returns the calls that Admit has taken from the bucket, and the bytes, the first time only.
func paid(ctx context.Context, bucket *rate.Limiter) (calls, bytes int) {
	if paid, ok := ctx.Value(prepaidKey{}).(*prepaid); ok && paid.from == bucket {
		return int(paid.left.Swap(0)), int(paid.bytes.Swap(0))
	}
	return 0, 0
}

// tooMuch is the error for a caller that writes more bytes per second than its limit.
const tooMuch = "you leave more than %d bytes per second behind in journals, snapshots, checkpoints, effects and proposals; send the same again after retryAfterMs, and put what is large elsewhere, with its uri here"

// bytesPerEntry is about how many bytes a journal entry takes besides its data.
const bytesPerEntry = 64

// place takes a place for the call: among the waiting candidates or the streams of its principal,
// or among the calls in progress at the instance.
func (g *Gate) place(ctx context.Context, a *account, op instance.Op) (done func(error), err error) {
	switch {
	case op.Waits && op.Cost == wire.CostCampaign:
		if done, ok := a.enter(&a.waiters, a.limits.Waiters); ok {
			return done, nil
		}
		return nil, g.refuse(ctx, true, time.Second, "%d of your candidates are waiting, and no more may wait", a.limits.Waiters)
	case op.Waits:
		if done, ok := a.enter(&a.watchers, a.limits.Watchers); ok {
			return done, nil
		}
		return nil, g.refuse(ctx, true, time.Second, "you have %d streams and long polls open, and may open no more", a.limits.Watchers)
	case op.Cost == wire.CostRenewal:
		return a.renewing.take(ctx, g)
	case op.Many:
		if done, ok := a.enter(&a.surveys, surveys); ok {
			return done, nil
		}
		return nil, g.refuse(ctx, false, time.Second, "%d of your calls of lists, trees or members are under way, and no more may be; wait for an answer", surveys)
	}
	return a.asking.take(ctx, g)
}

// Answered implements instance.Meter: it charges one call for every 20 records of the answer, and
// the bytes.
func (g *Gate) Answered(ctx context.Context, op instance.Op, records int) {
	n := records / recordsPerCall
	if n == 0 && op.Bytes == 0 {
		return
	}
	who, _ := authn.From(ctx)
	a := g.accounts.of(who)
	_, bucket := a.rate(op.Cost)
	owe(bucket, time.Now(), n)
	owe(a.bytes, time.Now(), op.Bytes)
}

// tooOften returns the error for a caller that makes more calls of a kind per second than its
// limit.
func tooOften(op instance.Op) string {
	switch {
	case op.Cost == wire.CostRenewal:
		return "you renew or release more than %d leases per second; renew a lease after renewInMs, and not earlier"
	case op.Cost == wire.CostCampaign:
		return "you call acquire more than %d times per second; use wait instead of asking again and again"
	case op.Waits:
		return "you make more than %d such calls per second; keep a stream open instead of opening others"
	}
	return "you make more than %d such calls per second; watch instead of asking again and again"
}

// minRetryAfter is the shortest time after which a refused caller is told to retry.
const minRetryAfter = 100 * time.Millisecond

func (g *Gate) refuse(ctx context.Context, quota bool, after time.Duration, format string, args ...any) error {
	return refuse(ctx, g.refused, quota, after, format, args...)
}

func refuse(ctx context.Context, refused func(context.Context, bool), quota bool, after time.Duration, format string, args ...any) error {
	if refused != nil {
		refused(ctx, quota)
	}
	return &leadership.Error{Code: wire.RateLimited, RetryAfter: max(after, minRetryAfter), Detail: fmt.Sprintf(format, args...)}
}
