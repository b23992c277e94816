package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	etcdclient "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// etcd is one member and those who call it.
type etcd struct {
	*server

	mu      sync.Mutex // guards clients
	clients []*caller
}

// startEtcd starts this program again, as etcd, with its data in the folder.
func startEtcd(ctx context.Context, dir string) (*etcd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	s, err := serve(ctx, "etcd", cmd, memberVariable+"="+dir)
	if err != nil {
		return nil, err
	}
	return &etcd{server: s}, nil
}

// caller is one that calls over a connection of its own, one call at a time.
type caller struct {
	*etcdclient.Client
	session *concurrency.Session
	leases  []etcdclient.LeaseID
}

// dial returns a client, whose connection is made with the first call.
func (s *etcd) dial() (*etcdclient.Client, error) {
	return etcdclient.New(etcdclient.Config{Endpoints: []string{s.address}, Logger: zap.NewNop()})
}

// caller returns the i-th.
func (s *etcd) caller(i int) (*caller, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.clients) <= i {
		c, err := s.dial()
		if err != nil {
			return nil, err
		}
		s.clients = append(s.clients, &caller{Client: c})
	}
	return s.clients[i], nil
}

// close closes the connections.
func (s *etcd) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		c.Close()
	}
	s.clients = nil
}

func seconds(d time.Duration) int { return int(d / time.Second) }

// cycles campaigns and resigns in a session that is there already.
func (s *etcd) cycles(_ context.Context, i int) (step, error) {
	c, err := s.caller(i)
	if err == nil && c.session == nil {
		c.session, err = concurrency.NewSession(c.Client, concurrency.WithTTL(seconds(aLongTime)))
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (int, error) { return 1, cycle(ctx, c.session, i) }, nil
}

func cycle(ctx context.Context, session *concurrency.Session, i int) error {
	e := concurrency.NewElection(session, fmt.Sprintf("cycle-%d", i))
	if err := e.Campaign(ctx, fmt.Sprintf("agent-%d", i)); err != nil {
		return err
	}
	return e.Resign(ctx)
}

// sessions campaigns and resigns in a session of its own, which ends with it.
func (s *etcd) sessions(_ context.Context, i int) (step, error) {
	c, err := s.caller(i)
	return func(ctx context.Context) (int, error) {
		session, err := concurrency.NewSession(c.Client, concurrency.WithTTL(seconds(aLongTime)))
		if err != nil {
			return 0, err
		}
		if err := cycle(ctx, session, i); err != nil {
			return 0, err
		}
		return 1, session.Close()
	}, err
}

// puts writes a key.
func (s *etcd) puts(_ context.Context, i int) (step, error) {
	c, err := s.caller(i)
	key, value := fmt.Sprintf("shard-%d", i), fmt.Sprintf("agent-%d", i)
	return func(ctx context.Context) (int, error) {
		_, err := c.Put(ctx, key, value)
		return 1, err
	}, err
}

// hold makes the i-th caller hold at least n leases.
func (s *etcd) hold(ctx context.Context, i, n int) (*caller, error) {
	c, err := s.caller(i)
	for err == nil && len(c.leases) < n {
		var g *etcdclient.LeaseGrantResponse
		if g, err = c.Grant(ctx, int64(seconds(aLongTime))); err == nil {
			c.leases = append(c.leases, g.ID)
		}
	}
	return c, err
}

// beats keeps one lease alive, by the client's KeepAliveOnce.
func (s *etcd) beats(ctx context.Context, i int) (step, error) {
	c, err := s.hold(ctx, i, 1)
	return func(ctx context.Context) (int, error) {
		_, err := c.KeepAliveOnce(ctx, c.leases[0])
		return 1, err
	}, err
}

// streams keeps n leases alive over one open stream: it sends for all of them, and then reads all answers.
func (s *etcd) streams(n int) func(context.Context, int) (step, error) {
	return func(ctx context.Context, i int) (step, error) {
		c, err := s.hold(ctx, i, n)
		if err != nil {
			return nil, err
		}
		stream, err := pb.NewLeaseClient(c.ActiveConnection()).LeaseKeepAlive(ctx)
		if err != nil {
			return nil, err
		}
		return func(context.Context) (int, error) { return beat(stream, c.leases[:n]) }, nil
	}
}

func beat(stream pb.Lease_LeaseKeepAliveClient, leases []etcdclient.LeaseID) (int, error) {
	for _, id := range leases {
		if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)}); err != nil {
			return 0, err
		}
	}
	for i := range leases {
		answer, err := stream.Recv()
		switch {
		case err != nil:
			return i, err
		case answer.TTL <= 0:
			return i, fmt.Errorf("lease %x is over", answer.ID)
		}
	}
	return len(leases), nil
}

// reads reads a key.
func (s *etcd) reads(options ...etcdclient.OpOption) func(context.Context, int) (step, error) {
	return func(ctx context.Context, i int) (step, error) {
		c, err := s.caller(i)
		if err != nil {
			return nil, err
		}
		key := fmt.Sprintf("shard-%d", i)
		if _, err := c.Put(ctx, key, fmt.Sprintf("agent-%d", i)); err != nil {
			return nil, err
		}
		return func(ctx context.Context) (int, error) {
			got, err := c.Get(ctx, key, options...)
			if err == nil && len(got.Kvs) != 1 {
				err = fmt.Errorf("%s: %d keys", key, len(got.Kvs))
			}
			return 1, err
		}, nil
	}
}
