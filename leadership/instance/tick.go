package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"regent/leadership"
)

// TickTime is the most that a Tick takes.
const TickTime = 40 * time.Second

// Ticked is what a Tick has done.
type Ticked struct {
	Announced int // events that were left behind
	Expired   int // leases that ran out unseen
	Retired   int // elections that were vacant for too long
}

// Tick does what is overdue, for a service that may have slept. In this order, it announces events
// that were left behind, records leases that ran out unseen, deletes elections that are to be
// retired and tells seats what they have not heard, and announces what came of that. Each part has
// its share of the time that is left, so none keeps the later ones from their turn by failing or
// being slow. The error joins those of all parts; of the announcing it is StoreUnavailable.
func (i *Instance) Tick(ctx context.Context) (done Ticked, err error) {
	ctx, cancel := context.WithTimeout(ctx, TickTime)
	defer cancel()
	left := 4
	part := func(count *int, do func(context.Context) (int, error)) error {
		end, _ := ctx.Deadline()
		share, cancel := context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer cancel()
		left--
		n, failed := do(share)
		*count += n
		err = errors.Join(err, failed)
		return failed
	}
	announced := part(&done.Announced, i.announce)
	part(&done.Expired, i.service.ExpireAll)
	part(&done.Retired, i.service.RetireAll)
	if announced == nil && done.Expired+done.Retired > 0 {
		part(&done.Announced, i.announce)
	}
	return done, err
}

// announce announces what was left behind.
func (i *Instance) announce(ctx context.Context) (announced int, err error) {
	if i.outbox == nil {
		return 0, nil
	}
	announced, err = i.outbox.Sweep(ctx)
	var code leadership.Code
	if err != nil && !errors.As(err, &code) {
		err = fmt.Errorf("%w: announcing what was left behind: %w", leadership.StoreUnavailable, err)
	}
	return announced, err
}
