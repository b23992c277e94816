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

// maxHaltAge is how old the halts that a grant is decided on may be.
const maxHaltAge = hub.DefaultExpiry

// halts returns the halts as they were at most maxHaltAge ago. It reads the store only if the cache
// does not have them.
func (i *Instance) halts(ctx context.Context) (all leadership.Reading, asked time.Duration, err error) {
	now := i.now()
	reading, err := i.hub.Read(ctx, leadership.ReadRequest{Election: leadership.HaltsElection})
	if errors.Is(err, leadership.NotFound) { // there never was a halt
		err = nil
	}
	return reading, now - reading.Age, err
}

// newestHalts returns the newest revision of the halts that the instance has heard of.
func (i *Instance) newestHalts() (r leadership.Revision) {
	i.hub.View(func(v *view.View, _ time.Duration) { r = v.Newest(leadership.HaltsElection) })
	return r
}

// recall releases a lease that was just granted if the election is halted by now: the halts that
// the grant was decided on may have become too old, or newer ones were heard of. A lease that its
// leader already had stays.
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
