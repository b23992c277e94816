package instance

import (
	"context"
	"slices"

	"regent/leadership"
	"regent/leadership/instance/internal/line"
)

// Acquire asks for the lease; see leadership.Service. With r.Wait it stands in line while another
// candidate leads; see package line.
//
// With r.Inherit the grant comes with what the last leader left behind. If that cannot be read, the
// caller gets the error, and asks again with its key: it has the lease. A lease whose key the
// caller does not know is released.
func (i *Instance) Acquire(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	if r.Inherit && i.ledger == nil {
		return leadership.Grant{}, errNoJournal
	}
	g, err := i.queue.Acquire(ctx, r)
	if err == nil && r.Inherit {
		err = i.inherit(ctx, &g, r.Key != nil)
	}
	if err != nil {
		return leadership.Grant{}, err
	}
	return g, nil
}

// Campaign implements Service.
func (i *Instance) Campaign(ctx context.Context, r *leadership.AcquireRequest) (*leadership.Grant, error) {
	if r.Inherit && i.ledger == nil {
		return nil, errNoJournal
	}
	g, err := i.queue.Stand(ctx, r)
	if err == nil && r.Inherit {
		err = i.inherit(ctx, g, r.Key != nil)
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// acquire is one attempt. A candidate whose rights went while it stood in line is refused.
func (i *Instance) acquire(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	if err := recheck(ctx); err != nil {
		return leadership.Grant{}, err
	}
	asked := i.now()
	g, err := i.service.Acquire(ctx, r)
	i.learn(g.Lease, err, asked)
	g.Lease = i.load.stretch(g.Lease, i.now())
	return g, err
}

// Renew keeps the caller's lease; see leadership.Service.
func (i *Instance) Renew(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	asked := i.now()
	l, err := i.service.Renew(ctx, r)
	now := i.now()
	i.load.took(now-asked, now)
	l, err = i.learn(l, err, asked)
	return i.load.stretch(l, now), err
}

// BatchRenew keeps many leases; see leadership.Service.
func (i *Instance) BatchRenew(ctx context.Context, batch []leadership.LeaseRequest) ([]leadership.Result, error) {
	asked := i.now()
	results, err := i.service.BatchRenew(ctx, batch)
	now := i.now()
	i.load.took(now-asked, now)
	for n := range results {
		i.learn(results[n].Lease, results[n].Err, asked)
		results[n].Lease = i.load.stretch(results[n].Lease, now)
	}
	return results, err
}

// Release ends the caller's lease; see leadership.Service.
func (i *Instance) Release(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	asked := i.now()
	l, err := i.service.Release(ctx, r)
	return i.learn(l, err, asked)
}

// Configure sets an election's configuration; see leadership.Service.
func (i *Instance) Configure(ctx context.Context, r leadership.ConfigureRequest) (leadership.Lease, error) {
	asked := i.now()
	l, err := i.service.Configure(ctx, r)
	return i.learn(l, err, asked)
}

// Delete deletes an election; see leadership.Service.
func (i *Instance) Delete(ctx context.Context, r leadership.DeleteRequest) (leadership.Lease, error) {
	return i.service.Delete(ctx, r) // its event informs every cache of the election
}

// Unlock ends the wait for an election before its time; see leadership.Service.
func (i *Instance) Unlock(ctx context.Context, r leadership.UnlockRequest) (leadership.Lease, error) {
	asked := i.now()
	l, err := i.service.Unlock(ctx, r)
	return i.learn(l, err, asked)
}

// Order carries out an operator's order; see leadership.Service. An assigned candidate that waits
// here is bound as in HandOver.
func (i *Instance) Order(ctx context.Context, r leadership.OrderRequest) (leadership.Lease, error) {
	if r.Kind == leadership.OrderAssign {
		r.ToKey = i.queue.KeyOf(r.Election, r.CandidateID)
	}
	asked := i.now()
	l, err := i.service.Order(ctx, r)
	return i.learn(l, err, asked)
}

// Overrides reads the standing orders of an election; see leadership.Service.
func (i *Instance) Overrides(ctx context.Context, e leadership.Election) ([]leadership.Override, error) {
	return i.service.Overrides(ctx, e)
}

// Judge counts a verdict; see leadership.Service.
func (i *Instance) Judge(ctx context.Context, r leadership.JudgeRequest) (leadership.Lease, error) {
	asked := i.now()
	l, err := i.service.Judge(ctx, r)
	return i.learn(l, err, asked)
}

// StepDown ends the caller's lease and says why; see leadership.Service.
func (i *Instance) StepDown(ctx context.Context, r leadership.StepDownRequest) (leadership.Lease, error) {
	asked := i.now()
	l, err := i.service.StepDown(ctx, r)
	return i.learn(l, err, asked)
}

// RequestApproval asks operators to approve of the caller's term; see leadership.Service.
func (i *Instance) RequestApproval(ctx context.Context, r leadership.ApprovalNote) (leadership.Lease, error) {
	asked := i.now()
	l, err := i.service.RequestApproval(ctx, r)
	return i.learn(l, err, asked)
}

// Explain says why a candidate does not lead, by one strong read; see leadership.Service. Of one
// that does not, it says from memory where it stands in the line of this instance, or that it does
// not: it may ask at another. A witness that stands there is said to be one.
func (i *Instance) Explain(ctx context.Context, r leadership.ExplainRequest) (leadership.Explanation, error) {
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
