package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"regent/leadership"
	"regent/leadership/client"
	"regent/test/process"
)

// longLease is a lease that does not end while it is measured.
const longLease = time.Hour

// regent is one `regent serve` with its clients, each with a connection of its own.
type regent struct {
	*process.Process
	agents []*agent
}

// startRegent starts the program on its default store.
func startRegent(t testing.TB) *regent {
	t.Helper()
	cmd := process.Regent.Command(t, "serve", "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+t.TempDir())
	s := &regent{Process: process.Serve(t, cmd)}
	for i := range most {
		a, err := s.newAgent(leadership.CandidateID(fmt.Sprintf("agent-%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		s.agents = append(s.agents, a)
	}
	return s
}

// agent is a client of the SDK that makes one call at a time.
type agent struct {
	*client.Client
	id     leadership.CandidateID
	wire   *http.Transport
	leases []leadership.LeaseRequest // that it holds
}

// newAgent returns an agent that has not connected yet.
func (s *regent) newAgent(id leadership.CandidateID) (*agent, error) {
	wire := &http.Transport{MaxIdleConnsPerHost: 1, DisableCompression: true}
	c, err := client.New(client.Config{
		Server: s.URL, HTTP: &http.Client{Transport: wire}, Candidate: client.Candidate{ID: id}, Log: slog.New(slog.DiscardHandler),
	})
	return &agent{Client: c, id: id, wire: wire}, err
}

// rest closes the connections, which the server would close while they are not used.
func (s *regent) rest() {
	for _, a := range s.agents {
		a.wire.CloseIdleConnections()
	}
}

// acquire acquires an election, for which it waits.
func (a *agent) acquire(ctx context.Context, e leadership.Election, wait time.Duration) (leadership.LeaseRequest, error) {
	key := leadership.NewKey()
	g, err := a.Acquire(ctx, leadership.AcquireRequest{Election: e, CandidateID: a.id, Key: &key, LeaseDuration: longLease, Wait: wait})
	return leadership.LeaseRequest{Election: e, CandidateID: a.id, Key: key, Token: g.Token}, err
}

// hold makes the i-th agent hold at least n leases.
func (s *regent) hold(ctx context.Context, i, n int) (*agent, error) {
	a := s.agents[i]
	for len(a.leases) < n {
		l, err := a.acquire(ctx, leadership.Election(fmt.Sprintf("shard-%d-%d", i, len(a.leases))), 0)
		if err != nil {
			return nil, err
		}
		a.leases = append(a.leases, l)
	}
	return a, nil
}

// cycles acquires and releases an election without other candidates.
func (s *regent) cycles(_ context.Context, i int) (operation, error) {
	a, e := s.agents[i], leadership.Election(fmt.Sprintf("cycle-%d", i))
	return func(ctx context.Context) (int, error) {
		l, err := a.acquire(ctx, e, 0)
		if err != nil {
			return 0, err
		}
		_, err = a.Do(ctx, leadership.Release{LeaseRequest: l})
		return 1, err
	}, nil
}

// renewals renews one lease.
func (s *regent) renewals(ctx context.Context, i int) (operation, error) {
	a, err := s.hold(ctx, i, 1)
	return func(ctx context.Context) (int, error) {
		_, err := a.Renew(ctx, a.leases[0])
		return 1, err
	}, err
}

// batches renews many leases in one call.
func (s *regent) batches(ctx context.Context, i int) (operation, error) {
	a, err := s.hold(ctx, i, batchSize)
	return func(ctx context.Context) (int, error) {
		results, err := a.BatchRenew(ctx, a.leases[:batchSize])
		for _, r := range results {
			err = errors.Join(err, r.Err)
		}
		return len(results), err
	}, err
}

// reads reads the election that the agent leads.
func (s *regent) reads(strong bool) prepare {
	return func(ctx context.Context, i int) (operation, error) {
		a, err := s.hold(ctx, i, 1)
		return func(ctx context.Context) (int, error) {
			_, err := a.Read(ctx, leadership.ReadRequest{Election: a.leases[0].Election, Strong: strong})
			return 1, err
		}, err
	}
}

// regentCandidate is an agent that campaigns for one election.
type regentCandidate struct {
	*agent
	election leadership.Election
	lease    leadership.LeaseRequest
}

func (s *regent) candidate(id, election string) (candidate, error) {
	a, err := s.newAgent(leadership.CandidateID(id))
	return &regentCandidate{agent: a, election: leadership.Election(election)}, err
}

func (c *regentCandidate) campaign(ctx context.Context) (err error) {
	c.lease, err = c.acquire(ctx, c.election, leadership.MaxWait)
	return err
}

func (c *regentCandidate) resign(ctx context.Context) error {
	_, err := c.Do(ctx, leadership.Release{LeaseRequest: c.lease})
	return err
}

func (c *regentCandidate) close() { c.wire.CloseIdleConnections() }
