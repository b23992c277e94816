package limit

import (
	"context"
	"sync"
	"time"

	"regent/httpapi/access/authn"
	"regent/leadership/wire"
)

// shares limits an amount for all principals together, and for each one. Callers that are not
// authenticated have only the common limit.
type shares struct {
	most, share int64

	mu    sync.Mutex
	total int64                     // guarded by mu
	by    map[authn.Principal]int64 // only principals with some; guarded by mu
}

func newShares(most, share int64) *shares {
	return &shares{most: most, share: share, by: map[authn.Principal]int64{}}
}

// take takes n, unless that exceeds the limit of the principal (own) or of all (all). leave gives
// it back; it may be called again.
func (s *shares) take(ctx context.Context, n int64) (leave func(), own, all bool) {
	principal, known := authn.From(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if own, all = known && s.by[principal]+n > s.share, s.total+n > s.most; own || all {
		return nil, own, all
	}
	s.add(principal, n)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.add(principal, -n)
	}), false, false
}

// add adds n to the count of a principal. Call with mu held.
func (s *shares) add(principal authn.Principal, n int64) {
	s.total += n
	if s.by[principal] += n; s.by[principal] == 0 {
		delete(s.by, principal)
	}
}

// Bodies limits the bytes of request bodies in transfer at an instance: to a quarter of its memory,
// and an eighth of that for each principal. Small bodies, such as those of single renewals, have
// limits of their own, a quarter of these, so that large ones cannot keep a renewal out.
type Bodies struct {
	small, large *shares
	refused      func(ctx context.Context, quota bool)
	tooMany      string
}

// NewBodies returns the limit for an instance with that much memory, in bytes. refused is called
// like Config.Refused.
func NewBodies(memory int64, refused func(ctx context.Context, quota bool)) *Bodies {
	return newBodies(memory/4, refused,
		"the bodies of requests that are under way at this instance would exceed %d bytes of yours, or %d of all; send fewer at the same time, and this one again later")
}

// NewReplies returns the limit for large replies that are not read yet: an eighth of the memory. It
// is separate from that of requests, so that slow readers cannot keep a renewal out.
func NewReplies(memory int64, refused func(ctx context.Context, quota bool)) *Bodies {
	return newBodies(memory/8, refused,
		"the large replies of this instance that are not read yet would exceed %d bytes of yours, or %d of all; read those that you have asked for, and ask for this one again later")
}

func newBodies(most int64, refused func(ctx context.Context, quota bool), tooMany string) *Bodies {
	const parts, less = 8, 4
	share := max(most/parts, 2*wire.MaxBatchBody) // the largest body of a request fits into it
	return &Bodies{newShares(share*parts/less, share/less), newShares(share*parts, share), refused, tooMany}
}

// Enter counts the bytes of a body until done is called, or refuses it. A body larger than a
// principal's limit counts as that limit.
func (b *Bodies) Enter(ctx context.Context, bytes int64) (done func(), err error) {
	of := b.large
	if bytes <= wire.MaxBody {
		of = b.small
	}
	if done, own, all := of.take(ctx, min(bytes, of.share)); !own && !all {
		return done, nil
	}
	return nil, refuse(ctx, b.refused, false, time.Second, b.tooMany, of.share, of.most)
}
