package limit

import (
	"context"
	"sync"
	"time"

	"regent/httpapi/access/authn"
	"regent/leadership/wire"
)

// Bodies bounds how many bytes the bodies of requests take that are under way at an instance: a
// quarter of its memory, and an eighth of that for each principal. Callers that are not
// authenticated are one principal.
type Bodies struct {
	most, share int64
	refused     func(ctx context.Context, quota bool)

	mu    sync.Mutex
	total int64            // guarded by mu
	by    map[string]int64 // by principal, of those that send one; guarded by mu
}

// NewBodies returns the bound of an instance that has so many bytes of memory. refused is that of
// Config.
func NewBodies(memory int64, refused func(ctx context.Context, quota bool)) *Bodies {
	const parts = 8
	share := max(memory/4/parts, 2*wire.MaxBatchBody) // the largest body fits into it
	return &Bodies{most: share * parts, share: share, refused: refused, by: map[string]int64{}}
}

// Enter counts the bytes of a body that is going to be read, or refuses it. done, which may be
// called again, must be called once the body is not needed any more.
func (b *Bodies) Enter(ctx context.Context, bytes int64) (done func(), err error) {
	who, _ := authn.From(ctx)
	principal := who.String()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.by[principal]+bytes > b.share:
		return nil, refuse(ctx, b.refused, false, time.Second,
			"the bodies of your requests that are under way at this instance would exceed %d bytes; send fewer at the same time, and this one again later", b.share)
	case b.total+bytes > b.most:
		return nil, refuse(ctx, b.refused, false, time.Second,
			"the bodies of all requests that are under way at this instance would exceed %d bytes; come again", b.most)
	}
	b.add(principal, bytes)
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.add(principal, -bytes)
	}), nil
}

// add counts bytes of a principal. Call with mu held.
func (b *Bodies) add(principal string, bytes int64) {
	b.total += bytes
	if b.by[principal] += bytes; b.by[principal] == 0 {
		delete(b.by, principal)
	}
}
