package limit

import (
	"context"
	"time"

	"regent/leadership/instance"
)

// longPart is the part, in percent, of the requests of an instance that may be long calls.
const longPart = 80

// Long is an instance.Gate that keeps room for short calls where a platform limits how many
// requests an instance handles at a time, such as Cloud Run by its concurrency. Long calls (waiting
// candidates, long polls, awaited acknowledgements and streams) of all principals together take up
// to 80 % of these. If they took all, renewals would have to wait in front of the instance, where
// no Gate sees them. One principal gets at most half of the long calls.
type Long struct {
	calls   *shares
	refused func(ctx context.Context, quota bool)
}

// NewLong returns the Gate of an instance that handles concurrency requests at a time, at least 2.
// With concurrency 0 it may have as many long calls as connections, because one HTTP/2 connection
// carries many calls. refused, which may be nil, is called for each refused call, as Config.Refused
// is.
func NewLong(concurrency, connections int, refused func(ctx context.Context, quota bool)) *Long {
	most := int64(connections)
	if concurrency > 0 {
		most = int64(concurrency) * longPart / 100
	}
	return &Long{newShares(most, max(most/2, 1)), refused}
}

func (g *Long) Enter(ctx context.Context, op instance.Op) (done func(error), err error) {
	if !op.Waits {
		return nil, nil
	}
	leave, own, all := g.calls.take(ctx, 1)
	switch {
	case all:
		return nil, refuse(ctx, g.refused, false, time.Second,
			"%d waiting candidates, long polls and streams are open at this instance, and it keeps its other requests for renewals; come again, or ask without waiting", g.calls.most)
	case own:
		return nil, refuse(ctx, g.refused, true, time.Second,
			"%d of your waiting candidates, long polls and streams are open at this instance, and it keeps the others for other callers; end some, or ask without waiting", g.calls.share)
	}
	return func(error) { leave() }, nil
}
