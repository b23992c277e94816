package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	etcdclient "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"regent/leadership"
)

func (b *bench) handover() *contest {
	return &contest{
		Contest: Contest{
			ID: "handover", Title: "Takeover when the leader lets go", Of: "elections", Kind: Delays,
			About: fmt.Sprintf("In each election one leads and one waits, for %v at least; the leader gives up, and they change places. A sample is from "+
				"when the release was sent to when the one who waits is told that it leads. Each has a connection of its own.", inLine),
			Entrants: []Entrant{
				{"etcd", "`Resign` and a waiting `Campaign`"},
				{"Regent", "`:release` and a waiting `:acquire`"},
			},
			Pairs: []Pair{{1, 0, Median, Goal{}}, {1, 0, Late, Goal{Size: 1, Most: 50}}},
		},
		sizes: b.Thrones, aspects: whole, rounds: b.Rounds, long: true,
		races: []race{
			func(ctx context.Context, n int) ([]Sample, error) { return b.handovers(ctx, n, b.etcd.pair) },
			func(ctx context.Context, n int) ([]Sample, error) { return b.handovers(ctx, n, b.regent.pair) },
		},
	}
}

// inLine is how long who waits has waited at least. etcd brings a watcher that has just come up to date every 100 ms, and tells it nothing before; most who
// wait have waited for longer than that.
const inLine = 150 * time.Millisecond

// contender is one of two who want to lead.
type contender interface {
	campaign(context.Context) error // returns when it leads
	resign(context.Context) error
}

// leastHandovers is how often each election changes its leader at least.
const leastHandovers = 4

// handovers lets the leaders of n elections change, fewer times if they are many.
func (b *bench) handovers(ctx context.Context, n int, pair func(i int) ([2]contender, func(), error)) ([]Sample, error) {
	took, errs := make([][]time.Duration, n), make([]error, n)
	begin := time.Now()
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			two, leave, err := pair(i)
			if err != nil {
				errs[i] = err
				return
			}
			defer leave()
			took[i], errs[i] = swap(ctx, two, max(b.Handovers/n, leastHandovers))
		})
	}
	running.Wait()
	var all []time.Duration
	for _, t := range took {
		all = append(all, t...)
	}
	return []Sample{sampleOf(begin, all)}, firstOf(errs)
}

// swap lets two change places.
func swap(ctx context.Context, two [2]contender, times int) (took []time.Duration, err error) {
	leader, next := two[0], two[1]
	if err := leader.campaign(ctx); err != nil {
		return nil, err
	}
	for range times {
		told := make(chan time.Time, 1)
		failed := make(chan error, 1)
		go func() {
			if err := next.campaign(ctx); err != nil {
				failed <- err
				return
			}
			told <- time.Now()
		}()
		<-time.After(inLine)
		sent := time.Now()
		if err := leader.resign(ctx); err != nil {
			return nil, err
		}
		select {
		case at := <-told:
			took = append(took, at.Sub(sent))
		case err := <-failed:
			return nil, err
		}
		leader, next = next, leader
	}
	return took, leader.resign(ctx)
}

// regentContender is a contender.
type regentContender struct {
	*agent
	election leadership.Election
	lease    leadership.LeaseRequest
}

func (c *regentContender) campaign(ctx context.Context) (err error) {
	c.lease, err = c.acquire(ctx, c.election, aLongTime, leadership.MaxWait)
	return err
}

func (c *regentContender) resign(ctx context.Context) error {
	_, err := c.Release(ctx, c.lease)
	return err
}

// pair is two agents of their own.
func (s *regent) pair(i int) (two [2]contender, leave func(), err error) {
	var wires []func()
	for k, id := range []leadership.CandidateID{"ann", "bob"} {
		a, err := s.newAgent(id, 0)
		if err != nil {
			return two, nil, err
		}
		two[k] = &regentContender{agent: a, election: leadership.Election(fmt.Sprintf("throne-%d", i))}
		wires = append(wires, a.wire.CloseIdleConnections)
	}
	return two, func() { wires[0](); wires[1]() }, nil
}

// etcdContender is a contender.
type etcdContender struct {
	*concurrency.Election
	id string
}

func (c *etcdContender) campaign(ctx context.Context) error { return c.Campaign(ctx, c.id) }
func (c *etcdContender) resign(ctx context.Context) error   { return c.Resign(ctx) }

// pair is two clients of their own, each with a session.
func (s *etcd) pair(i int) (two [2]contender, leave func(), err error) {
	var sessions []*concurrency.Session
	leave = func() {
		for _, session := range sessions {
			session.Close()
			session.Client().Close()
		}
	}
	for k, id := range []string{"ann", "bob"} {
		session, err := s.session(aLongTime)
		if err != nil {
			leave()
			return two, nil, err
		}
		sessions = append(sessions, session)
		two[k] = &etcdContender{concurrency.NewElection(session, fmt.Sprintf("throne-%d", i)), id}
	}
	return two, leave, nil
}

// session is one over a connection of its own.
func (s *etcd) session(lease time.Duration) (*concurrency.Session, error) {
	c, err := s.dial()
	if err != nil {
		return nil, err
	}
	return newSession(c, lease)
}

func newSession(c *etcdclient.Client, lease time.Duration) (*concurrency.Session, error) {
	session, err := concurrency.NewSession(c, concurrency.WithTTL(seconds(lease)))
	if err != nil {
		c.Close()
	}
	return session, err
}
