package authz

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"regent/httpapi"
	"regent/httpapi/access/authn"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// Record is what is kept of a call that was refused, or that needed an operator.
type Record struct {
	Principal string
	Call      Call
	Election  leadership.Election    // "" for all
	Candidate leadership.CandidateID // as whom
	Code      leadership.Code        // why it was not done; "" if it was
	RequestID string
}

// Guard is a Service that does what the caller may ask for. The caller is the principal of the context; a context without one is nobody's, and
// may do nothing.
type Guard struct {
	service httpapi.Service
	policy  func() *Policy
	audit   func(context.Context, Record)
}

// NewGuard returns a Guard before the service. policy is asked at each call, and audit is told of each Record; both may be called from many
// goroutines.
func NewGuard(service httpapi.Service, policy func() *Policy, audit func(context.Context, Record)) *Guard {
	return &Guard{service, policy, audit}
}

// request is what somebody wants.
type request struct {
	call      Call
	election  leadership.Election
	candidate leadership.CandidateID // of a call that is made as one
	prefix    string                 // of a call about all elections that begin so
}

// fits says whether a grant is over what is wanted.
func (r request) fits(who authn.Principal, g grant) bool {
	switch r.call {
	case Tick:
		return true
	case List:
		return len(g.Elections) > 0 // of which there may be none
	case WatchAll:
		return g.overAll(r.prefix)
	case Acquire, Renew, Release:
		return g.over(r.election) && g.owns(who, r.candidate)
	}
	return g.over(r.election)
}

// permit returns why the caller may not do it.
func (g *Guard) permit(ctx context.Context, r request) error {
	who, known := authn.From(ctx)
	if known && g.policy().allows(who, r.call, func(one grant) bool { return r.fits(who, one) }) {
		return nil
	}
	g.record(ctx, r, wire.PermissionDenied)
	return denied(who, r)
}

// denied is the same whether the election is there or not: nobody has looked.
func denied(who authn.Principal, r request) error {
	var about string
	switch {
	case r.election != "" && r.candidate != "":
		about = fmt.Sprintf(" election %q as %q", r.election, r.candidate)
	case r.election != "":
		about = fmt.Sprintf(" election %q", r.election)
	case r.call == WatchAll:
		about = fmt.Sprintf(" with the prefix %q", r.prefix)
	}
	return &leadership.Error{Code: wire.PermissionDenied, Detail: fmt.Sprintf(
		"%s may not %s%s; whoever looks after this service can grant it in the policy", who, r.call, about)}
}

// record leaves a Record.
func (g *Guard) record(ctx context.Context, r request, code leadership.Code) {
	who, _ := authn.From(ctx)
	g.audit(ctx, Record{
		Principal: who.String(), Call: r.call, Election: r.election, Candidate: r.candidate, Code: code, RequestID: leadership.RequestID(ctx),
	})
}

// done leaves a Record of a privileged call, and returns its error.
func (g *Guard) done(ctx context.Context, r request, err error) error {
	if !privileged[r.call] {
		return err
	}
	var code leadership.Code
	if err != nil && !errors.As(err, &code) {
		code = wire.Internal
	}
	g.record(ctx, r, code)
	return err
}

// guarded makes a call if the caller may.
func guarded[A, R any](ctx context.Context, g *Guard, r request, call func(context.Context, A) (R, error), argument A) (R, error) {
	if err := g.permit(ctx, r); err != nil {
		var none R
		return none, err
	}
	result, err := call(ctx, argument)
	return result, g.done(ctx, r, err)
}

// Acquire implements httpapi.Service.
func (g *Guard) Acquire(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	return guarded(ctx, g, request{call: Acquire, election: r.Election, candidate: r.CandidateID}, g.service.Acquire, r)
}

// Renew implements httpapi.Service.
func (g *Guard) Renew(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	return guarded(ctx, g, ofLease(Renew, r), g.service.Renew, r)
}

// Release implements httpapi.Service.
func (g *Guard) Release(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	return guarded(ctx, g, ofLease(Release, r), g.service.Release, r)
}

func ofLease(call Call, r leadership.LeaseRequest) request {
	return request{call: call, election: r.Election, candidate: r.CandidateID}
}

// CheckToken implements httpapi.Service.
func (g *Guard) CheckToken(ctx context.Context, r leadership.TokenCheck) (leadership.Lease, error) {
	return guarded(ctx, g, request{call: CheckToken, election: r.Election}, g.service.CheckToken, r)
}

// BatchRenew implements httpapi.Service. What the caller may not renew is refused by itself.
func (g *Guard) BatchRenew(ctx context.Context, batch []leadership.LeaseRequest) ([]leadership.Result, error) {
	return some(batch, func(r leadership.LeaseRequest) error { return g.permit(ctx, ofLease(Renew, r)) },
		func(permitted []leadership.LeaseRequest) ([]leadership.Result, error) {
			return g.service.BatchRenew(ctx, permitted)
		})
}

// BatchCheckTokens implements httpapi.Service. What the caller may not check is refused by itself.
func (g *Guard) BatchCheckTokens(ctx context.Context, batch []leadership.TokenCheck) ([]leadership.Result, error) {
	return some(batch, func(r leadership.TokenCheck) error {
		return g.permit(ctx, request{call: CheckToken, election: r.Election})
	},
		func(permitted []leadership.TokenCheck) ([]leadership.Result, error) {
			return g.service.BatchCheckTokens(ctx, permitted)
		})
}

// some makes the call for the part of a batch that is permitted, and returns all results in the batch's order.
func some[T any](batch []T, permit func(T) error, call func([]T) ([]leadership.Result, error)) ([]leadership.Result, error) {
	results := make([]leadership.Result, len(batch))
	var permitted []T
	var at []int
	for i, r := range batch {
		if err := permit(r); err != nil {
			results[i].Err = err
			continue
		}
		permitted, at = append(permitted, r), append(at, i)
	}
	if len(permitted) == 0 && len(batch) > 0 {
		return results, nil
	}
	made, err := call(permitted)
	if err != nil {
		return nil, err
	}
	for i, result := range made {
		results[at[i]] = result
	}
	return results, nil
}

// Get implements httpapi.Service.
func (g *Guard) Get(ctx context.Context, e leadership.Election) (leadership.Lease, error) {
	return guarded(ctx, g, request{call: Read, election: e}, g.service.Get, e)
}

// Read implements httpapi.Service.
func (g *Guard) Read(ctx context.Context, r leadership.ReadRequest) (leadership.Reading, error) {
	return guarded(ctx, g, request{call: Read, election: r.Election}, g.service.Read, r)
}

// Await implements httpapi.Service.
func (g *Guard) Await(ctx context.Context, r leadership.ReadRequest, wait time.Duration) (leadership.Reading, bool, error) {
	if err := g.permit(ctx, request{call: Read, election: r.Election}); err != nil {
		return leadership.Reading{}, false, err
	}
	return g.service.Await(ctx, r, wait)
}

// List implements httpapi.Service. It leaves out what the caller may not read, and reads on until there is something to show: a page that is empty, or that
// goes on after a name which is not shown, would tell of what is not.
func (g *Guard) List(ctx context.Context, r leadership.ListRequest) (leadership.Page, error) {
	most := cmp.Or(r.Limit, leadership.DefaultPageSize)
	for {
		page, err := guarded(ctx, g, request{call: List}, g.service.List, r)
		if err != nil {
			return leadership.Page{}, err
		}
		kept := g.readable(ctx, page.Leases)
		switch {
		case len(kept) > most, len(kept) > 0 && page.Next != "":
			kept = kept[:min(len(kept), most)]
			return leadership.Page{Leases: kept, Next: kept[len(kept)-1].Election}, nil
		case page.Next == "":
			return leadership.Page{Leases: kept}, nil
		}
		r.After, r.Limit = page.Next, leadership.MaxPageSize
	}
}

// readable are the leases that the caller may read.
func (g *Guard) readable(ctx context.Context, leases []leadership.Lease) []leadership.Lease {
	who, _ := authn.From(ctx)
	policy := g.policy()
	return slices.DeleteFunc(slices.Clone(leases), func(l leadership.Lease) bool {
		return !policy.allows(who, List, func(one grant) bool { return one.over(l.Election) })
	})
}

// Events implements httpapi.Service.
func (g *Guard) Events(ctx context.Context, r leadership.EventsRequest) ([]leadership.Event, error) {
	return guarded(ctx, g, request{call: Events, election: r.Election}, g.service.Events, r)
}

// Watch implements httpapi.Service.
func (g *Guard) Watch(ctx context.Context, r leadership.WatchRequest) (leadership.Reading, *instance.Watch, error) {
	if err := g.permit(ctx, request{call: Watch, election: r.Election}); err != nil {
		return leadership.Reading{}, nil, err
	}
	return g.service.Watch(ctx, r)
}

// Feed implements httpapi.Service. The caller must be allowed to watch all elections whose names begin with the prefix.
func (g *Guard) Feed(ctx context.Context, prefix string, after instance.Cursor) (*instance.Feed, error) {
	if err := g.permit(ctx, request{call: WatchAll, prefix: prefix}); err != nil {
		return nil, err
	}
	return g.service.Feed(ctx, prefix, after)
}

// Census implements httpapi.Service. It is asked for what Feed is.
func (g *Guard) Census(ctx context.Context, prefix string) (leadership.Census, error) {
	return guarded(ctx, g, request{call: WatchAll, prefix: prefix}, g.service.Census, prefix)
}

// Configure implements httpapi.Service.
func (g *Guard) Configure(ctx context.Context, r leadership.ConfigureRequest) (leadership.Lease, error) {
	return guarded(ctx, g, request{call: Configure, election: r.Election}, g.service.Configure, r)
}

// Delete implements httpapi.Service.
func (g *Guard) Delete(ctx context.Context, r leadership.DeleteRequest) (leadership.Lease, error) {
	return guarded(ctx, g, request{call: Delete, election: r.Election}, g.service.Delete, r)
}

// Tick implements httpapi.Service.
func (g *Guard) Tick(ctx context.Context) (expired, announced int, err error) {
	r := request{call: Tick}
	if err := g.permit(ctx, r); err != nil {
		return 0, 0, err
	}
	expired, announced, err = g.service.Tick(ctx)
	return expired, announced, g.done(ctx, r, err)
}
