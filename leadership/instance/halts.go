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
func (i *Instance) halts(ctx context.Context) (all leadership.Reading, asked time.Duration, err error) {
	now := i.now()
	reading, err := i.hub.Read(ctx, leadership.ReadRequest{Election: leadership.HaltsElection})
	if errors.Is(err, leadership.NotFound) { // there never was one
		err = nil
	}
	return reading, now - reading.Age, err
}

// newestHalts is the newest revision of the halts that the instance has heard of.
func (i *Instance) newestHalts() (r leadership.Revision) {
	i.hub.View(func(v *view.View, _ time.Duration) { r = v.Newest(leadership.HaltsElection) })
	return r
}

// recall releases a lease if the election is halted by now: the halts by which it was granted have
// got too old meanwhile, or others were heard of. A lease that its leader had already stays.
func (i *Instance) recall(ctx context.Context, g leadership.Grant) error {
	if !g.AcquiredAt.Equal(g.LastHeartbeat) {
		return nil
	}
	halts, _, err := i.halts(ctx)
	if err == nil && len(halts.Overrides.Halting(g.Election, g.ReadAt)) == 0 {
		return nil
	}
	asked := i.now()
	back, released := i.service.GiveBack(ctx, g)
	i.learn(&back, released, view.Read, asked)
	outcome := leadership.StoreUnavailable
	if released != nil || back.State == leadership.Held && back.Token == g.Token { // a copy of the call was answered
		outcome = leadership.OutcomeUnknown
	}
	return errors.Join(fmt.Errorf("instance: %w: the lease of election %q is given back, because of a halt", outcome, g.Election), err, released)
}
