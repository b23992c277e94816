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

// Ticked is the result of a Tick.
type Ticked struct {
	Announced int // events that were left in the outbox
	Expired   int // leases whose end was not recorded
	Retired   int // elections that were vacant for too long
}

// Tick does overdue work, for a service that may have slept. In this order, it announces events
// left in the outbox, records the ends of leases that ran out, retires elections and tells seats of
// changes, and announces the events of that. Each part has a share of the remaining time, so a part
// that fails or is slow does not keep the later ones from running. The error joins those of all
// parts; if announcing fails it is StoreUnavailable.
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

// announce announces the events left in the outbox.
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
