package httpfence_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"regent/leadership"
	"regent/leadership/fence/httpfence"
	"regent/store/memory"
)

// history is an election whose leader changes, with checks of former, current and future tokens.
type history struct {
	*leadership.Service
	checks *httpfence.Checks
	maxAge time.Duration

	mu       sync.Mutex // guards the fields below
	random   *rand.Rand
	reigns   map[leadership.Token]tenure
	newest   leadership.Token
	heard    map[leadership.Token]time.Time // when the event of its grant arrived
	verdicts []verdict
}

// tenure is when a token was the leader's: from its start until before its end.
type tenure struct {
	from, to time.Time
	released bool
}

type verdict struct {
	token        leadership.Token
	begun, ended time.Time
	err          error
}

func (c *history) some(n time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.random.Int64N(int64(n)))
}

func (c *history) one(in int) bool { return c.some(time.Duration(in)) == 0 }

// CheckToken waits before and after it looks.
func (c *history) CheckToken(ctx context.Context, r leadership.TokenCheck) (leadership.Lease, error) {
	time.Sleep(c.some(300 * time.Millisecond))
	if c.one(10) {
		return leadership.Lease{}, errors.ErrUnsupported
	}
	defer time.Sleep(c.some(300 * time.Millisecond))
	return c.Service.CheckToken(ctx, r)
}

// Publish delivers most events, a little later.
func (c *history) Publish(events ...leadership.Event) {
	for _, e := range events {
		if c.one(4) {
			continue
		}
		time.AfterFunc(c.some(400*time.Millisecond), func() {
			c.checks.Heard(e)
			c.mu.Lock()
			defer c.mu.Unlock()
			if e.Type == leadership.EventAcquired && c.heard[e.Token].IsZero() {
				c.heard[e.Token] = time.Now()
			}
		})
	}
}

// lead leads, renews for a while, and then releases the lease or disappears.
func (c *history) lead(ctx context.Context) error {
	duration := time.Second + c.some(2*time.Second).Truncate(time.Millisecond)
	g, err := c.Acquire(ctx, leadership.AcquireRequest{Election: election, CandidateID: "ann", LeaseDuration: duration})
	if errors.Is(err, leadership.LeaseHeld) {
		time.Sleep(c.some(200 * time.Millisecond))
		return nil
	}
	if err != nil {
		return err
	}
	now := time.Now()
	r := tenure{from: now, to: now.Add(duration)}
	lease := leadership.LeaseRequest{Election: election, CandidateID: "ann", Key: g.Key, Token: g.Token}
	for c.reigned(g.Token, r); !c.one(4); c.reigned(g.Token, r) {
		time.Sleep(c.some(duration))
		if _, err := c.Renew(ctx, lease); err != nil {
			return fmt.Errorf("renew: %w", err)
		}
		r.to = time.Now().Add(duration)
	}
	time.Sleep(c.some(duration))
	if c.one(2) {
		_, err = c.Release(ctx, lease)
		r.to, r.released = time.Now(), true
		c.reigned(g.Token, r)
	}
	return err
}

func (c *history) reigned(token leadership.Token, r tenure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reigns[token], c.newest = r, token
}

// ask checks a token near the newest.
func (c *history) ask(ctx context.Context) {
	time.Sleep(c.some(200 * time.Millisecond))
	c.mu.Lock()
	token := max(c.newest-1+leadership.Token(c.random.Int64N(3)), 1)
	c.mu.Unlock()
	v := verdict{token: token, begun: time.Now()}
	v.err = c.checks.Check(ctx, mark(token))
	v.ended = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verdicts = append(c.verdicts, v)
}

func (c *history) wrong(v verdict) string {
	r, granted := c.reigns[v.token]
	next, overtaken := c.heard[v.token+1]
	believed := r.to
	if r.released {
		believed = believed.Add(c.maxAge)
	}
	switch in, stale := v.err == nil, errors.Is(v.err, leadership.TokenStale); {
	case in && (!granted || v.ended.Before(r.from)):
		return "it was not granted"
	case in && !v.ended.Before(believed):
		return "its leader had stopped long before"
	case in && overtaken && v.begun.After(next):
		return "news of a later leader had arrived"
	case stale && granted && !v.begun.Before(r.from) && v.ended.Before(r.to):
		return "it was the leader's"
	}
	return ""
}

// runCourse returns how many checks were let in, and how many refused.
func runCourse(t *testing.T, seed uint64) (in, stale int) {
	const maxAge, lasts, askers = time.Second, time.Minute, 8
	c := &history{
		maxAge: maxAge,
		random: rand.New(rand.NewPCG(seed, 0)),
		reigns: map[leadership.Token]tenure{},
		heard:  map[leadership.Token]time.Time{},
	}
	c.Service = leadership.New(memory.New(memory.Config{}), c)
	start := time.Now()
	var err error
	c.checks, err = httpfence.NewChecks(httpfence.ChecksConfig{Regent: c, MaxAge: maxAge, Now: func() time.Duration { return time.Since(start) }})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for time.Since(start) < lasts {
			if err := c.lead(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	for range askers {
		all.Go(func() {
			for time.Since(start) < lasts {
				c.ask(t.Context())
			}
		})
	}
	all.Wait()
	c.checks.Wait()
	time.Sleep(time.Second) // events in flight arrive
	return c.judge(t, seed)
}

func (c *history) judge(t *testing.T, seed uint64) (in, stale int) {
	for _, v := range c.verdicts {
		if why := c.wrong(v); why != "" {
			r := c.reigns[v.token]
			t.Errorf("seed %d: token %d led from %v to %v, and a check from %v to %v said %v: %s", seed, v.token, r.from, r.to, v.begun, v.ended, v.err, why)
		}
		switch {
		case v.err == nil:
			in++
		case errors.Is(v.err, leadership.TokenStale):
			stale++
		}
	}
	return in, stale
}

func TestVerdictsAgreeWithTheHistory(t *testing.T) {
	t.Parallel()
	in, stale := 0, 0
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			i, s := runCourse(t, seed)
			in, stale = in+i, stale+s
		})
	}
	if in < 1000 || stale < 1000 {
		t.Errorf("%d checks let in and %d refused: that is no trial", in, stale)
	}
}
