package leadership

import (
	"context"
	"time"
)

// HandOver names the successor of the caller's term; see the rule of that name.
func (s *Service) HandOver(ctx context.Context, r HandOverRequest) (Lease, error) {
	c, err := r.renewal()
	if err != nil {
		return Lease{}, err
	}
	command := HandOverCommand{Renewal: c, To: r.To, Chosen: r.Chosen, ToKey: r.ToKey, Within: r.within(), Reason: r.Reason}
	if field, err := command.validate(); err != nil {
		return Lease{}, invalid(field, err)
	}
	return s.lease(ExpectChange(ctx), c.Election, func(snap Snapshot) (Change, error) { return HandOver(snap, command) })
}

func (r HandOverRequest) within() time.Duration {
	if r.Within == 0 {
		return DefaultWithin
	}
	return r.Within
}

// SayReady says that the caller, a successor or a new leader, has loaded what it needs; see the
// rule of that name. r has the caller's own id and key, and the token of the present leader.
func (s *Service) SayReady(ctx context.Context, r LeaseRequest) (Lease, error) {
	c, err := r.renewal()
	if err != nil {
		return Lease{}, err
	}
	return s.lease(ExpectChange(ctx), r.Election, func(snap Snapshot) (Change, error) { return SayReady(snap, c) })
}

// Yield says that the caller has stopped, so that its successor may lead; see the rule of that
// name.
func (s *Service) Yield(ctx context.Context, r LeaseRequest) (Lease, error) {
	c, err := r.renewal()
	if err != nil {
		return Lease{}, err
	}
	return s.lease(ExpectChange(ctx), c.Election, func(snap Snapshot) (Change, error) { return Yield(snap, c) })
}
