package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"regent/leadership"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/view"
)

// maxHaltAge is how old the halts may be by which a lease is granted.
const maxHaltAge = hub.DefaultExpiry

// halts returns the halts of all elections, as they were at an instant that is at most maxHaltAge
// ago. They are read from the store only if the cache does not have them.
func (i *Instance) halts(ctx context.Context) (all leadership.Overrides, asked time.Duration, err error) {
	now := i.now()
	reading, err := i.hub.Read(ctx, leadership.ReadRequest{Election: leadership.HaltsElection})
	if errors.Is(err, leadership.NotFound) { // there never was one
		err = nil
	}
	return reading.Overrides, now - reading.Age, err
}

// recall releases a lease whose grant took so long that the halts by which it was granted are too
// old, if the election is halted by now. A lease that its leader had already stays.
func (i *Instance) recall(ctx context.Context, g leadership.Grant) error {
	if !g.AcquiredAt.Equal(g.LastHeartbeat) {
		return nil
	}
	halts, _, err := i.halts(ctx)
	if err == nil && len(halts.Halting(g.Election, g.ReadAt)) == 0 {
		return nil
	}
	asked := i.now()
	back, released := i.service.GiveBack(ctx, g)
	i.learn(&back, released, view.Read, asked)
	outcome := leadership.StoreUnavailable
	if released != nil || back.State == leadership.Held && back.Token == g.Token { // a copy of the call was answered
		outcome = leadership.OutcomeUnknown
	}
	return errors.Join(fmt.Errorf("instance: %w: the grant of election %q took longer than %v, and is given back, because of a halt",
		outcome, g.Election, maxHaltAge), err, released)
}
