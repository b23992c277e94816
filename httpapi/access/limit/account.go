package limit

import (
	"container/list"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"regent/leadership"
)

// account is what one principal has used.
type account struct {
	limits   Limits
	renewals *rate.Limiter
	campaign *rate.Limiter
	reads    *rate.Limiter

	mu        sync.Mutex
	waiters   int                          // guarded by mu
	watchers  int                          // guarded by mu
	elections map[leadership.Election]bool // guarded by mu
}

func newAccount(l Limits) *account {
	return &account{
		limits:    l,
		renewals:  bucket(l.Renewals),
		campaign:  bucket(l.Campaigns),
		reads:     bucket(l.Reads),
		elections: map[leadership.Election]bool{},
	}
}

// bucket has room for two seconds, so that what comes in a crowd and is few on the whole is not refused.
func bucket(perSecond int) *rate.Limiter { return rate.NewLimiter(rate.Limit(perSecond), 2*perSecond) }

// take takes n from the bucket, or says when there are as many.
func take(b *rate.Limiter, n int) (after time.Duration, ok bool) {
	r := b.ReserveN(time.Now(), min(n, b.Burst()))
	if after := r.Delay(); after > 0 {
		r.Cancel()
		return after, false
	}
	return 0, true
}

// enter counts one more, unless there are as many as there may be. What it returns counts it off.
func (a *account) enter(count *int, limit int) (leave func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if *count >= limit {
		return nil, false
	}
	*count++
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		*count--
	}), true
}

// hasRoom says whether the election is one that is counted, or may be.
func (a *account) hasRoom(e leadership.Election) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.elections[e] || len(a.elections) < a.limits.Elections
}

// note counts the election.
func (a *account) note(e leadership.Election) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.elections[e] = true
}

// idle says whether nothing would be lost if the account were forgotten but what it has counted.
func (a *account) idle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiters == 0 && a.watchers == 0
}

// maxAccounts bounds what principals cost the instance. Who may call is written in a policy; this is for one that lets everybody in.
const maxAccounts = 1000

// accounts are those of the principals that have called lately.
type accounts struct {
	limits func(principal string) Limits

	mu     sync.Mutex
	byName map[string]*list.Element // guarded by mu
	recent list.List                // of entry, the latest first; guarded by mu
}

func newAccounts(limits func(principal string) Limits) accounts {
	return accounts{limits: limits, byName: map[string]*list.Element{}}
}

type entry struct {
	name    string
	account *account
}

// of returns the principal's account. One whose limits have changed begins anew.
func (s *accounts) of(principal string) *account {
	limits := s.limits(principal).orDefault()
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.byName[principal]; ok {
		s.recent.MoveToFront(e)
		if a := e.Value.(*entry); a.account.limits != limits {
			a.account = newAccount(limits)
		}
		return e.Value.(*entry).account
	}
	if len(s.byName) >= maxAccounts {
		s.forget()
	}
	a := newAccount(limits)
	s.byName[principal] = s.recent.PushFront(&entry{principal, a})
	return a
}

// forget forgets the one that has been idle for longest, with the mutex held.
func (s *accounts) forget() {
	for e := s.recent.Back(); e != nil; e = e.Prev() {
		if a := e.Value.(*entry); a.account.idle() {
			delete(s.byName, a.name)
			s.recent.Remove(e)
			return
		}
	}
}
