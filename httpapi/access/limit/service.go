package limit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"regent/httpapi"
	"regent/httpapi/access/authn"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
)

// Service is one that does as much for each principal as its limits allow.
type Service struct {
	service  httpapi.Service
	accounts accounts
	renewing places
	asking   places // all else that asks the store
	refused  func(ctx context.Context, quota bool)
}

// Config says how much there is. Service and Limits are required.
type Config struct {
	Service httpapi.Service
	// Limits are those of a principal. It may be called from many goroutines.
	Limits func(principal string) Limits
	// Renewing and Asking are how many renewals, and how many other calls, may be under way at a time, candidates in line and streams not
	// counted: 256 each if they are zero.
	Renewing, Asking int
	// Refused, if there is one, is told of each call that was one too many: at a time, or in all (quota).
	Refused func(ctx context.Context, quota bool)
}

const defaultPlaces = 256

// New returns the Service with its limits.
func New(c Config) *Service {
	s := &Service{service: c.Service, accounts: newAccounts(c.Limits), renewing: newPlaces(c.Renewing), asking: newPlaces(c.Asking), refused: c.Refused}
	if s.refused == nil {
		s.refused = func(context.Context, bool) {}
	}
	return s
}

// account is that of the caller.
func (s *Service) account(ctx context.Context) *account {
	who, _ := authn.From(ctx)
	return s.accounts.of(who.String())
}

// refuse is the answer to a call that is one too many.
func (s *Service) refuse(ctx context.Context, quota bool, after time.Duration, format string, args ...any) error {
	s.refused(ctx, quota)
	return &leadership.Error{Code: wire.RateLimited, RetryAfter: max(after, minRetryAfter), Detail: fmt.Sprintf(format, args...)}
}

// minRetryAfter is the least for which a caller that has had too much is sent away.
const minRetryAfter = 100 * time.Millisecond

// renew admits n renewals. What it returns is called when they are over.
func (s *Service) renew(ctx context.Context, n int) (over func(), err error) {
	a := s.account(ctx)
	if after, ok := take(a.renewals, n); !ok {
		return nil, s.refuse(ctx, false, after, "you renew more than %d leases a second; a lease wants to be renewed at renewInMs, and no earlier", a.limits.Renewals)
	}
	return s.renewing.take(ctx, s)
}

// read admits n calls that are neither renewals nor campaigns.
func (s *Service) read(ctx context.Context, n int) (over func(), err error) {
	a := s.account(ctx)
	if after, ok := take(a.reads, n); !ok {
		return nil, s.refuse(ctx, false, after, "you make more than %d such calls a second; watch instead of asking again and again", a.limits.Reads)
	}
	return s.asking.take(ctx, s)
}

// election admits one that the caller campaigns for, or configures. What it returns notes it, unless the caller may not use it: a stranger could
// fill the memory with names.
func (s *Service) election(ctx context.Context, e leadership.Election) (used func(error), err error) {
	a := s.account(ctx)
	if !a.hasRoom(e) {
		return nil, s.refuse(ctx, true, time.Minute, "you have used %d elections, and there is room for no more; use those that you have", a.limits.Elections)
	}
	return func(err error) {
		if !errors.Is(err, wire.PermissionDenied) && !errors.Is(err, leadership.InvalidArgument) {
			a.note(e)
		}
	}, nil
}

// admitted makes a call that is admitted.
func admitted[A, R any](ctx context.Context, admit func(context.Context, int) (func(), error), n int, call func(context.Context, A) (R, error), argument A) (R, error) {
	over, err := admit(ctx, n)
	if err != nil {
		var none R
		return none, err
	}
	defer over()
	return call(ctx, argument)
}

// Acquire implements httpapi.Service. A candidate that stands in line needs a place there, and none among the calls under way.
func (s *Service) Acquire(ctx context.Context, r leadership.AcquireRequest) (leadership.Grant, error) {
	a := s.account(ctx)
	if after, ok := take(a.campaign, 1); !ok {
		return leadership.Grant{}, s.refuse(ctx, false, after, "you campaign more than %d times a second; stand in line with wait instead of asking again and again", a.limits.Campaigns)
	}
	used, err := s.election(ctx, r.Election)
	if err != nil {
		return leadership.Grant{}, err
	}
	over, err := s.campaign(ctx, a, r.Wait)
	if err != nil {
		return leadership.Grant{}, err
	}
	defer over()
	grant, err := s.service.Acquire(ctx, r)
	used(err)
	return grant, err
}

func (s *Service) campaign(ctx context.Context, a *account, wait time.Duration) (over func(), err error) {
	if wait <= 0 {
		return s.asking.take(ctx, s)
	}
	leave, ok := a.enter(&a.waiters, a.limits.Waiters)
	if !ok {
		return nil, s.refuse(ctx, true, time.Second, "%d of your candidates stand in line, and there is room for no more", a.limits.Waiters)
	}
	return leave, nil
}

// Renew implements httpapi.Service.
func (s *Service) Renew(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	return admitted(ctx, s.renew, 1, s.service.Renew, r)
}

// BatchRenew implements httpapi.Service. It counts for as many as it renews.
func (s *Service) BatchRenew(ctx context.Context, batch []leadership.LeaseRequest) ([]leadership.Result, error) {
	return admitted(ctx, s.renew, len(batch), s.service.BatchRenew, batch)
}

// Release implements httpapi.Service.
func (s *Service) Release(ctx context.Context, r leadership.LeaseRequest) (leadership.Lease, error) {
	return admitted(ctx, s.renew, 1, s.service.Release, r)
}

// CheckToken implements httpapi.Service.
func (s *Service) CheckToken(ctx context.Context, r leadership.TokenCheck) (leadership.Lease, error) {
	return admitted(ctx, s.read, 1, s.service.CheckToken, r)
}

// BatchCheckTokens implements httpapi.Service. It counts for as many as it checks.
func (s *Service) BatchCheckTokens(ctx context.Context, batch []leadership.TokenCheck) ([]leadership.Result, error) {
	return admitted(ctx, s.read, len(batch), s.service.BatchCheckTokens, batch)
}

// Get implements httpapi.Service.
func (s *Service) Get(ctx context.Context, e leadership.Election) (leadership.Lease, error) {
	return admitted(ctx, s.read, 1, s.service.Get, e)
}

// Read implements httpapi.Service.
func (s *Service) Read(ctx context.Context, r leadership.ReadRequest) (leadership.Reading, error) {
	return admitted(ctx, s.read, 1, s.service.Read, r)
}

// List implements httpapi.Service.
func (s *Service) List(ctx context.Context, r leadership.ListRequest) (leadership.Page, error) {
	return admitted(ctx, s.read, 1, s.service.List, r)
}

// Events implements httpapi.Service.
func (s *Service) Events(ctx context.Context, r leadership.EventsRequest) ([]leadership.Event, error) {
	return admitted(ctx, s.read, 1, s.service.Events, r)
}

// Configure implements httpapi.Service.
func (s *Service) Configure(ctx context.Context, r leadership.ConfigureRequest) (leadership.Lease, error) {
	used, err := s.election(ctx, r.Election)
	if err != nil {
		return leadership.Lease{}, err
	}
	lease, err := admitted(ctx, s.read, 1, s.service.Configure, r)
	used(err)
	return lease, err
}

// Delete implements httpapi.Service.
func (s *Service) Delete(ctx context.Context, r leadership.DeleteRequest) (leadership.Lease, error) {
	return admitted(ctx, s.read, 1, s.service.Delete, r)
}

// Census implements httpapi.Service.
func (s *Service) Census(ctx context.Context, prefix string) (leadership.Census, error) {
	return admitted(ctx, s.read, 1, s.service.Census, prefix)
}

// watch admits a reader that waits for news.
func (s *Service) watch(ctx context.Context) (leave func(), err error) {
	a := s.account(ctx)
	if after, ok := take(a.reads, 1); !ok {
		return nil, s.refuse(ctx, false, after, "you make more than %d such calls a second; keep a stream open instead of opening others", a.limits.Reads)
	}
	leave, ok := a.enter(&a.watchers, a.limits.Watchers)
	if !ok {
		return nil, s.refuse(ctx, true, time.Second, "you have %d streams and long polls open, and there is room for no more", a.limits.Watchers)
	}
	return leave, nil
}

// Await implements httpapi.Service.
func (s *Service) Await(ctx context.Context, r leadership.ReadRequest, wait time.Duration) (leadership.Reading, bool, error) {
	leave, err := s.watch(ctx)
	if err != nil {
		return leadership.Reading{}, false, err
	}
	defer leave()
	return s.service.Await(ctx, r, wait)
}

// Watch implements httpapi.Service.
func (s *Service) Watch(ctx context.Context, r leadership.WatchRequest) (leadership.Reading, *instance.Watch, error) {
	leave, err := s.watch(ctx)
	if err != nil {
		return leadership.Reading{}, nil, err
	}
	stays := false
	defer func() {
		if !stays {
			leave()
		}
	}()
	reading, watch, err := s.service.Watch(ctx, r)
	if err == nil {
		watch.OnClose(leave)
		stays = true
	}
	return reading, watch, err
}

// Feed implements httpapi.Service.
func (s *Service) Feed(ctx context.Context, prefix string, after instance.Cursor) (*instance.Feed, error) {
	leave, err := s.watch(ctx)
	if err != nil {
		return nil, err
	}
	stays := false
	defer func() {
		if !stays {
			leave()
		}
	}()
	feed, err := s.service.Feed(ctx, prefix, after)
	if err == nil {
		feed.OnClose(leave)
		stays = true
	}
	return feed, err
}

// Tick implements httpapi.Service.
func (s *Service) Tick(ctx context.Context) (expired, announced int, err error) {
	over, err := s.read(ctx, 1)
	if err != nil {
		return 0, 0, err
	}
	defer over()
	return s.service.Tick(ctx)
}
