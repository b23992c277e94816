package client

import (
	"context"

	"regent/leadership"
)

// Delegate makes an election for a part of the leader's task, and returns its name: the name of
// this election, a dot, and child. Its candidates campaign for it as for any other; a lease there
// never outlives the end of this lease as the server last read it. limits bounds what its leader
// may delegate in turn; leadership.AsParent derives a limit from this election's, and 0 allows
// none. It is idempotent, and repeated while the server cannot be reached, until ctx or the lease
// ends.
//
// Errors: leadership.DepthExceeded and leadership.LimitExceeded; leadership.InvalidArgument, if an
// election of that name exists with another configuration; leadership.LeaseLost; the cause, if the
// lease or ctx has ended.
func (l *Lease) Delegate(ctx context.Context, child string, limits leadership.Limits) (leadership.Election, error) {
	made, err := persist(ctx, l, func(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
		return l.client.Delegate(ctx, leadership.DelegateRequest{LeaseRequest: r, Child: child, Limits: limits})
	})
	return made.Election, err
}
