package limit

import (
	"context"
	"math"
	"sync"
	"time"

	"regent/httpapi/access/authn"
	"regent/leadership/instance"
)

// longPart is the part, in percent, of the requests of an instance that may be long calls.
const longPart = 80

// Long is an instance.Gate that keeps room for short calls where a platform bounds how many
// requests an instance handles at a time, such as Cloud Run by its concurrency. Calls that go on
// for long, of all principals together, take up to 80 % of these: waiting candidates, long polls,
// awaited acknowledgements and streams. If they took all, renewals would have to wait in front of
// the instance, where no Gate sees them. One principal gets half of them at most.
type Long struct {
	most, share int
	refused     func(ctx context.Context, quota bool)

	mu   sync.Mutex
	open int            // guarded by mu
	by   map[string]int // by principal, of those that have some; guarded by mu
}

// NewLong returns the Gate of an instance that handles so many requests at a time, 2 or more, or
// that has so many connections at most, where concurrency is 0. Refused is told of each call that
// is refused, as that of Config; it may be nil.
func NewLong(concurrency, connections int, refused func(ctx context.Context, quota bool)) *Long {
	if refused == nil {
		refused = func(context.Context, bool) {}
	}
	g := &Long{most: concurrency * longPart / 100, refused: refused, by: map[string]int{}}
	g.share = max(g.most/2, 1)
	if concurrency == 0 {
		g.most, g.share = math.MaxInt, connections/2
	}
	return g
}

// Enter implements instance.Gate.
func (g *Long) Enter(ctx context.Context, op instance.Op) (done func(error), err error) {
	if !op.Waits {
		return nil, nil
	}
	who, known := authn.From(ctx)
	principal := who.String()
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.open >= g.most:
		return nil, refuse(ctx, g.refused, false, time.Second,
			"%d waiting candidates, long polls and streams are open at this instance, and it keeps its other requests for renewals; come again, or ask without waiting", g.most)
	case known && g.by[principal] >= g.share:
		return nil, refuse(ctx, g.refused, true, time.Second,
			"%d of your waiting candidates, long polls and streams are open at this instance, and it keeps the others for other callers; end some, or ask without waiting", g.share)
	}
	g.open++
	g.by[principal]++
	return func(error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.open--
		if g.by[principal]--; g.by[principal] == 0 {
			delete(g.by, principal)
		}
	}, nil
}
