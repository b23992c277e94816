package instance

import (
	"context"
	"slices"

	"regent/leadership"
	"regent/leadership/instance/internal/line"
	"regent/leadership/instance/internal/view"
)

// Acquire asks for the lease; see service.Service. With r.Wait it stands in line while another
// candidate leads; see package line.
//
// With r.Inherit the grant includes the state that earlier leaders left. If that cannot be read,
// the caller gets the error. It has the lease, and must ask again with its key; a lease whose key
// the caller does not know is released.
func (i *Instance) Acquire(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	g, err := i.queue.Acquire(ctx, r)
	if err == nil {
		err = i.finish(ctx, &r, &g)
	}
	if err != nil {
		return leadership.Grant{}, err
	}
	return g, nil
}

func (i *Instance) Campaign(ctx context.Context, r *leadership.AcquireRequest) (*leadership.Grant, error) {
	g, err := i.queue.Stand(ctx, r)
	if err == nil {
		err = i.finish(ctx, r, g)
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// acquire makes one attempt; the queue passes the answer to the hub. It refuses a candidate that
// has lost its rights while it stood in line. Every grant is made here.
func (i *Instance) acquire(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	if recheck := r.InLine.Recheck; recheck != nil {
		if err := recheck(); err != nil {
			return leadership.Grant{}, err
		}
	}
	halts, asked, err := i.halts(ctx)
	if err != nil {
		return leadership.Grant{}, err
	}
	r.InLine.Halts = halts.Overrides
	g, err := i.service.Acquire(ctx, r)
	if err == nil && (i.now()-asked > maxHaltAge || i.newestHalts() > halts.Revision) {
		err = i.recall(ctx, g)
	}
	if err != nil {
		return leadership.Grant{}, err
	}
	return g, nil
}

// finish adds to a grant the parts that are only for its caller.
func (i *Instance) finish(ctx context.Context, r *leadership.AcquireRequest, g *leadership.Grant) error {
	i.load.stretch(&g.Lease, i.now())
	if !r.Inherit {
		return nil
	}
	return i.inherit(ctx, g, r.Key != nil)
}

// Renew renews the caller's lease; see service.Service.
func (i *Instance) Renew(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	asked := i.now()
	l, err := i.service.Renew(ctx, r)
	now := i.now()
	i.load.took(now-asked, now)
	i.learn(&l, err, view.Committed, asked)
	i.load.stretch(&l, now)
	return l, err
}

// BatchRenew renews many leases; see service.Service.
func (i *Instance) BatchRenew(ctx context.Context, batch []leadership.LeaseRequest) ([]leadership.Result, error) {
	asked := i.now()
	results, err := i.service.BatchRenew(ctx, batch)
	now := i.now()
	i.load.took(now-asked, now)
	i.hub.LearnAll(results, asked)
	for n := range results {
		i.load.stretch(&results[n].Lease, now)
	}
	return results, err
}

// Do carries out a command; see service.Service.
//
// A hand-over without To goes to the best candidate in this instance's line that can lead and has a
// key of its own or, if none waits here, to the first in line at another instance. It is refused
// with NotEligible if no candidate waits.
//
// If the successor, or the candidate that an operator assigns, waits in this instance's line, only
// the incarnation that waits there can take over. If it does not wait here, the first incarnation
// that says it is ready can.
func (i *Instance) Do(ctx context.Context, c leadership.Command) (leadership.Lease, error) {
	switch order := c.(type) {
	case leadership.HandOver:
		if err := i.choose(ctx, &order); err != nil {
			return leadership.Lease{}, err
		}
		order.ToKey = i.queue.KeyOf(order.Election, order.To)
		halts, _, err := i.halts(ctx)
		if err != nil {
			return leadership.Lease{}, err
		}
		order.Halts = halts.Overrides
		c = order
	case leadership.Order:
		if order.Kind == leadership.OrderAssign {
			order.ToKey = i.queue.KeyOf(order.Election, order.CandidateID)
			c = order
		}
	}
	asked := i.now()
	l, err := i.service.Do(ctx, c)
	switch c.(type) {
	case leadership.Delete, leadership.Withdraw: // their events inform every cache of the election
	case leadership.SayReady: // the caller does not lead
		i.learn(&l, err, view.Read, asked)
	default:
		i.learn(&l, err, view.Committed, asked)
	}
	return l, err
}

// Explain returns why a candidate does not lead, by one strong read; see service.Service. It adds,
// from memory, the candidate's position in this instance's line, or that it does not wait here (it
// may wait at another instance), or that it is a witness.
func (i *Instance) Explain(ctx context.Context, r leadership.ExplainRequest) (leadership.Explanation, error) {
	halts, _, err := i.halts(ctx)
	if err != nil {
		return leadership.Explanation{}, err
	}
	r.Halts = halts.Overrides
	x, err := i.service.Explain(ctx, r)
	if err != nil || x.Leads {
		return x, err
	}
	here := leadership.Cause{Code: leadership.ReasonNotAsking}
	if position, of := i.queue.Position(r.Election, r.CandidateID); position > 0 {
		here = leadership.Cause{Code: leadership.ReasonInLine, Position: position, Of: of}
	} else if slices.ContainsFunc(i.queue.Standing(r.Election), func(s line.Stander) bool { return s.CandidateID == r.CandidateID }) {
		here = leadership.Cause{Code: leadership.ReasonWitness}
	}
	at := slices.IndexFunc(x.Causes, func(c leadership.Cause) bool { return c.Code == leadership.ReasonProbation })
	if at < 0 {
		at = len(x.Causes)
	}
	x.Causes = slices.Insert(x.Causes, at, here)
	return x, nil
}
