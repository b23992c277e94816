package limit

import (
	"context"
	"sync"

	"regent/httpapi/access/authn"
)

// shares bounds how much of something all principals have together, and how much one of them. Those
// that are not authenticated have no share of their own.
type shares struct {
	most, share int64

	mu    sync.Mutex
	total int64                     // guarded by mu
	by    map[authn.Principal]int64 // of those that have some; guarded by mu
}

func newShares(most, share int64) *shares {
	return &shares{most: most, share: share, by: map[authn.Principal]int64{}}
}

// take takes n, unless that exceeds the share of the principal (own) or what there is (all). leave,
// which may be called again, gives it back.
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

// add counts n for a principal. Call with mu held.
func (s *shares) add(principal authn.Principal, n int64) {
	s.total += n
	if s.by[principal] += n; s.by[principal] == 0 {
		delete(s.by, principal)
	}
}
