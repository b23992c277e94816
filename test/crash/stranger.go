package crash

import (
	"context"
	"errors"
	"fmt"
	"time"

	"regent/leadership"
	"regent/store/bolt"
)

// challenge has a stranger ask for every lease. Nobody may get one that another holds, or that is locked, and nobody a token that
// was seen before. After another boot what ran at the last commit runs anew, which was last or later, and not after late. Else it
// is late now.
func (v view) challenge(store *bolt.Store, s *seen, otherBoot bool, last, late time.Time) error {
	service := leadership.New(store)
	for name, e := range v.elections {
		if _, trusted := s.snapshots[name]; !trusted {
			continue
		}
		g, err := service.Acquire(context.Background(), leadership.AcquireRequest{Election: name, CandidateID: "stranger"})
		refusal, named := errors.AsType[*leadership.Error](err)
		running := e.lease.State == leadership.Held && late.Before(e.lease.LeaseExpiration)
		switch {
		case err == nil && !e.free(late):
			return fmt.Errorf("%s: a stranger is granted what is not free", name)
		case err == nil && g.Token <= e.lease.Token:
			return fmt.Errorf("%s: a stranger is granted token %d, and %d was granted before", name, g.Token, e.lease.Token)
		case err == nil:
		case !named:
			return fmt.Errorf("%s: a stranger is refused: %w", name, err)
		case e.free(late) && !otherBoot, otherBoot && e.free(last):
			return fmt.Errorf("%s: a stranger is refused: %v", name, err)
		case otherBoot && running && refusal.RetryAfter < e.lease.LeaseDuration-time.Second:
			return fmt.Errorf("%s: after another boot %v are left of a lease of %v", name, refusal.RetryAfter, e.lease.LeaseDuration)
		}
	}
	return nil
}

// free says whether the election can be acquired at the instant.
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
