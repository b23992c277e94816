package crash

import (
	"context"
	"errors"
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/service"
	"regent/store/file"
)

// challenge lets another candidate ask for every lease. It must get none that is held or locked,
// and no token that was seen before. After another boot the leases of the last commit run anew,
// from the instant last or later, but not after late. In the same boot it is late now.
func (v view) challenge(store *file.Store, otherBoot bool, last, late time.Time) error {
	service := service.New(store)
	for name, e := range v.elections {
		g, err := service.Acquire(context.Background(), leadership.AcquireRequest{Election: name, CandidateID: "challenger"})
		refusal, named := errors.AsType[*leadership.Error](err)
		running := e.lease.State == leadership.Held && late.Before(e.lease.LeaseExpiration)
		switch {
		case err == nil && !e.free(late):
			return fmt.Errorf("%s: another candidate is granted a lease that is not free", name)
		case err == nil && g.Token <= e.lease.Token:
			return fmt.Errorf("%s: another candidate is granted token %d after %d", name, g.Token, e.lease.Token)
		case err == nil:
		case !named:
			return fmt.Errorf("%s: another candidate is refused: %w", name, err)
		case e.free(late) && !otherBoot, otherBoot && e.free(last):
			return fmt.Errorf("%s: another candidate is refused: %v", name, err)
		case otherBoot && running && refusal.RetryAfter < e.lease.LeaseDuration-time.Second:
			return fmt.Errorf("%s: after another boot %v are left of a lease of %v", name, refusal.RetryAfter, e.lease.LeaseDuration)
		}
	}
	return nil
}

// free reports whether the election can be acquired at the instant.
func (e election) free(now time.Time) bool {
	l := e.lease
	switch {
	case l.Deleted:
		return false
	case l.State == leadership.Held:
		return !now.Before(l.LeaseExpiration.Add(l.Config.LockDelay))
	}
	return !now.Before(l.ReadAt.Add(l.LockedFor))
}
