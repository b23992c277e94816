package client

import (
	"context"
	"fmt"

	"regent/leadership"
)

// Handle returns the argument for Resume: the names, the present token and the key of the lease.
// The key is a secret: a process that has it can renew and release the lease.
func (l *Lease) Handle() leadership.LeaseRequest { return l.named() }

// Resume continues a lease that was granted to another Client, even in another process: it renews
// the lease under its key, and then keeps it as Campaign does. The margin is that of the Client's
// Candidate; the lease keeps the candidate id that it was granted to. If an operator has begun a
// new epoch meanwhile, the lease has the new token. The lease outlives ctx, as that of Campaign
// does.
//
// Two processes may keep the same lease; each learns only by its own renewals that the other one
// has resigned, and believes until then that it leads. A process that only wants to stop keeping
// such a lease calls LetEnd.
//
// Errors: leadership.LeaseLost, if the lease is over; leadership.StoreUnavailable and
// leadership.OutcomeUnknown, after which the same call may be made again; those of any call.
func (c *Client) Resume(ctx context.Context, r leadership.LeaseRequest) (*Lease, error) {
	sent := c.clock()
	lease, err := c.Renew(ctx, r)
	if token, ok := epochOf(err, r); ok {
		r.Token, r.Ticket = token, ""
		sent = c.clock()
		lease, err = c.Renew(ctx, r)
	}
	if err != nil {
		return nil, about(r, err)
	}
	l, err := c.newLease(context.WithoutCancel(ctx), sent, leadership.Grant{Lease: lease, Key: r.Key})
	if err != nil {
		return nil, err
	}
	l.reports.begin(lease.Report)
	left := l.Remaining()
	if left == 0 {
		return nil, about(r, fmt.Errorf("%w: the lease was over when the answer to its renewal arrived; resume it again", leadership.OutcomeUnknown))
	}
	now := c.clock()
	l.noteEnd(now)
	go l.keep(now, l.pause(lease.RenewIn, left))
	c.logOf(l).Info("leading on", "remaining", left)
	return l, nil
}
