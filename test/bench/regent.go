package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/client"
)

// aLongTime is a lease that does not end while it is measured.
const aLongTime = time.Hour

// regent is one `regent serve` and those who call it.
type regent struct {
	*server

	mu     sync.Mutex // guards agents
	agents []*agent
}

// startRegent starts the program on a new file in the folder.
func startRegent(ctx context.Context, binary, dir string, flags ...string) (*regent, error) {
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--store", "bolt:" + filepath.Join(dir, "regent.db")}, flags...)
	s, err := serve(ctx, "regent", exec.Command(binary, args...))
	if err != nil {
		return nil, err
	}
	return &regent{server: s}, nil
}

// agent is one that calls over a connection of its own, one call at a time.
type agent struct {
	*client.Client
	id     leadership.CandidateID
	wire   *http.Transport
	leases []leadership.LeaseRequest // that it holds
}

// newAgent returns an agent that has not connected yet.
func (s *regent) newAgent(id leadership.CandidateID, lease time.Duration) (*agent, error) {
	wire := &http.Transport{MaxIdleConnsPerHost: 1, DisableCompression: true}
	c, err := client.New(client.Config{
		Server: "http://" + s.address, HTTP: &http.Client{Transport: wire},
		Candidate: client.Candidate{ID: id, LeaseDuration: lease},
		Log:       slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	return &agent{Client: c, id: id, wire: wire}, err
}

// agent returns the i-th.
func (s *regent) agent(i int) (*agent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.agents) <= i {
		a, err := s.newAgent(leadership.CandidateID(fmt.Sprintf("agent-%d", len(s.agents))), aLongTime)
		if err != nil {
			return nil, err
		}
		s.agents = append(s.agents, a)
	}
	return s.agents[i], nil
}

// rest closes the connections, which the server would do while they are not used.
func (s *regent) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.agents {
		a.wire.CloseIdleConnections()
	}
}

// acquire takes an election.
func (a *agent) acquire(ctx context.Context, e leadership.Election, lease, wait time.Duration) (leadership.LeaseRequest, error) {
	key := leadership.NewKey()
	g, err := a.Acquire(ctx, leadership.AcquireRequest{Election: e, CandidateID: a.id, Key: &key, LeaseDuration: lease, Wait: wait})
	return leadership.LeaseRequest{Election: e, CandidateID: a.id, Key: key, Token: g.Token}, err
}

// lead makes the i-th agent hold at least n leases.
func (s *regent) lead(ctx context.Context, i, n int) (*agent, error) {
	a, err := s.agent(i)
	for err == nil && len(a.leases) < n {
		var l leadership.LeaseRequest
		l, err = a.acquire(ctx, leadership.Election(fmt.Sprintf("shard-%d-%d", i, len(a.leases))), aLongTime, 0)
		if err == nil {
			a.leases = append(a.leases, l)
		}
	}
	return a, err
}

// cycles acquires and releases an election that nobody else wants.
func (s *regent) cycles(_ context.Context, i int) (step, error) {
	a, err := s.agent(i)
	e := leadership.Election(fmt.Sprintf("cycle-%d", i))
	return func(ctx context.Context) (int, error) {
		l, err := a.acquire(ctx, e, aLongTime, 0)
		if err != nil {
			return 0, err
		}
		_, err = a.Release(ctx, l)
		return 1, err
	}, err
}

// renewals renews one lease.
func (s *regent) renewals(ctx context.Context, i int) (step, error) {
	a, err := s.lead(ctx, i, 1)
	return func(ctx context.Context) (int, error) {
		_, err := a.Renew(ctx, a.leases[0])
		return 1, err
	}, err
}

// batches renews many leases in one call.
func (s *regent) batches(ctx context.Context, i int) (step, error) {
	a, err := s.lead(ctx, i, batchSize)
	return func(ctx context.Context) (int, error) { return renewAll(ctx, a, a.leases[:batchSize]) }, err
}

// renewAll returns how many were renewed.
func renewAll(ctx context.Context, a *agent, leases []leadership.LeaseRequest) (int, error) {
	results, err := a.BatchRenew(ctx, leases)
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	return len(results), err
}

// reads reads the election that the agent leads.
func (s *regent) reads(strong bool) func(context.Context, int) (step, error) {
	return func(ctx context.Context, i int) (step, error) {
		a, err := s.lead(ctx, i, 1)
		return func(ctx context.Context) (int, error) {
			_, err := a.Read(ctx, leadership.ReadRequest{Election: a.leases[0].Election, Strong: strong})
			return 1, err
		}, err
	}
}
