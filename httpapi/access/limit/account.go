package limit

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"regent/httpapi/access/authn"
	"regent/leadership"
	"regent/leadership/wire"
)

// account is the usage of a principal, under the limits that were in force when it called.
type account struct {
	limits Limits
	*usage
}

// usage is what a principal uses at present, whatever its limits.
type usage struct {
	renewals  *rate.Limiter
	campaigns *rate.Limiter
	reads     *rate.Limiter
	bytes     *rate.Limiter
	renewing  *places
	asking    *places // for all other calls of the store

	mu        sync.Mutex
	waiters   int                               // guarded by mu
	watchers  int                               // guarded by mu
	surveys   int                               // guarded by mu
	elections map[leadership.Election]time.Time // when each was used last; guarded by mu
	full      time.Time                         // when the first of them can be forgotten; guarded by mu
}

// newAccount returns an account that begins with the calls of two seconds, so that a short burst is
// not refused, and the bytes of eight seconds, because a new leader may write a large state at
// once.
func newAccount(l Limits, renewing, asking chan struct{}) *account {
	return &account{l, &usage{
		renewals:  bucket(l.Renewals, 2),
		campaigns: bucket(l.Campaigns, 2),
		reads:     bucket(l.Reads, 2),
		bytes:     bucket(l.Bytes, 8),
		renewing:  newPlaces(renewing),
		asking:    newPlaces(asking),
		elections: map[leadership.Election]time.Time{},
	}}
}

func bucket(perSecond, seconds int) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond), seconds*perSecond)
}

// with returns the account with other limits. Usage and debts stay.
func (a *account) with(l Limits) *account {
	full := newAccount(l, nil, nil)
	for _, of := range [][2]*rate.Limiter{{a.renewals, full.renewals}, {a.campaigns, full.campaigns}, {a.reads, full.reads}, {a.bytes, full.bytes}} {
		of[0].SetLimit(of[1].Limit())
		of[0].SetBurst(of[1].Burst())
	}
	return &account{l, a.usage}
}

// rate returns the limit of a cost, and its bucket.
func (a *account) rate(c wire.Cost) (perSecond int, bucket *rate.Limiter) {
	switch c {
	case wire.CostRenewal:
		return a.limits.Renewals, a.renewals
	case wire.CostCampaign:
		return a.limits.Campaigns, a.campaigns
	}
	return a.limits.Reads, a.reads
}

// take removes n tokens from the bucket, or returns how long until it has them. paid of them were
// removed before. A batch larger than the bucket passes when the bucket is full, and leaves a debt:
// later calls wait until it is paid, so batches do not exceed the rate either.
func take(b *rate.Limiter, n, paid int) (after time.Duration, ok bool) {
	now := time.Now()
	if due := min(n, b.Burst()) - paid; due > 0 {
		r := b.ReserveN(now, due)
		if after := r.DelayFrom(now); after > 0 {
			r.CancelAt(now)
			return after + time.Duration(float64(paid)/float64(b.Limit())*float64(time.Second)), false // a repeated call pays in Admit again
		}
	}
	owe(b, now, n-b.Burst())
	return 0, true
}

// owe removes n tokens from the bucket even if it has fewer: later calls wait until it has them
// again.
func owe(b *rate.Limiter, now time.Time, n int) {
	for ; n > 0; n -= b.Burst() {
		b.ReserveN(now, min(n, b.Burst()))
	}
}

// enter adds one to count, or returns false if count is at its limit. Call leave once.
func (a *account) enter(count *int, limit int) (leave func(error), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if *count >= limit {
		return nil, false
	}
	*count++
	return func(error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		*count--
	}, true
}

// forgetAfter is how long an election counts after its principal last used it.
const forgetAfter = 24 * time.Hour

// hasRoom reports whether the election is counted already, or the limit allows one more.
func (a *account) hasRoom(e leadership.Election) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, counted := a.elections[e]; counted || len(a.elections) < a.limits.Elections {
		return true
	}
	a.forgetElections(time.Now())
	return len(a.elections) < a.limits.Elections
}

// forgetElections drops elections that were not used for forgetAfter. It does nothing until the
// oldest of them is due. Call with mu held.
func (a *account) forgetElections(now time.Time) {
	if now.Before(a.full) {
		return
	}
	a.full = now.Add(forgetAfter)
	for e, used := range a.elections {
		if until := used.Add(forgetAfter); !now.Before(until) {
			delete(a.elections, e)
		} else if until.Before(a.full) {
			a.full = until
		}
	}
}

func (a *account) use(e leadership.Election) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.elections[e] = time.Now()
}

func (a *account) deleted(e leadership.Election) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.elections, e)
}

// idle reports whether the account has neither waiting candidates nor streams.
func (a *account) idle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiters == 0 && a.watchers == 0
}

// maxAccounts limits the memory of an instance whose access file admits every account. Only idle
// accounts are dropped, so there may be more.
const maxAccounts = 1000

// accounts has the accounts of the principals that have called lately.
type accounts struct {
	limits           func(authn.Principal) Limits
	renewing, asking chan struct{} // the places of all principals

	mu     sync.Mutex
	recent *simplelru.LRU[string, *account] // guarded by mu
}

func newAccounts(limits func(authn.Principal) Limits, renewing, asking chan struct{}) *accounts {
	recent, err := simplelru.NewLRU[string, *account](maxAccounts, nil)
	if err != nil {
		panic(err) // the size is positive
	}
	return &accounts{limits: limits, renewing: renewing, asking: asking, recent: recent}
}

// of returns the principal's account.
func (s *accounts) of(who authn.Principal) *account {
	limits, principal := s.limits(who).orDefault(), who.String()
	s.mu.Lock()
	defer s.mu.Unlock()
	a, known := s.recent.Get(principal)
	switch {
	case known && a.limits == limits:
		return a
	case known:
		a = a.with(limits)
	default:
		if s.recent.Len() >= maxAccounts {
			s.forget()
		}
		a = newAccount(limits, s.renewing, s.asking)
	}
	s.recent.Add(principal, a)
	return a
}

// forget drops the least recently used idle account. Call with mu held.
func (s *accounts) forget() {
	for _, principal := range s.recent.Keys() { // least recently used first
		if a, _ := s.recent.Peek(principal); a.idle() {
			s.recent.Remove(principal)
			return
		}
	}
	s.recent.Resize(s.recent.Len() + 1)
}
