package limit

import (
	"context"
	"time"

	"regent/leadership/wire"
)

// Bodies bounds how many bytes the bodies of requests take that are under way at an instance: a
// quarter of its memory, and an eighth of that for each principal.
type Bodies struct {
	bytes   *shares
	refused func(ctx context.Context, quota bool)
}

// NewBodies returns the bound of an instance that has so many bytes of memory. refused is that of
// Config.
func NewBodies(memory int64, refused func(ctx context.Context, quota bool)) *Bodies {
	const parts = 8
	share := max(memory/4/parts, 2*wire.MaxBatchBody) // the largest body fits into it
	return &Bodies{newShares(share*parts, share), refused}
}

// Enter counts the bytes of a body that is going to be read, or refuses it. done, which may be
// called again, must be called once the body is not needed any more.
func (b *Bodies) Enter(ctx context.Context, bytes int64) (done func(), err error) {
	done, own, all := b.bytes.take(ctx, bytes)
	switch {
	case own:
		err = refuse(ctx, b.refused, false, time.Second,
			"the bodies of your requests that are under way at this instance would exceed %d bytes; send fewer at the same time, and this one again later", b.bytes.share)
	case all:
		err = refuse(ctx, b.refused, false, time.Second,
			"the bodies of all requests that are under way at this instance would exceed %d bytes; come again", b.bytes.most)
	}
	return done, err
}
