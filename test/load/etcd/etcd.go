package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	etcdclient "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"regent/test/process"
)

// memberVariable is the environment variable with the folder of a process that runs etcd.
const memberVariable = "BENCH_MEMBER"

// member runs etcd: a cluster of one, with its defaults except the addresses and the log level.
func member(dir string) error {
	c := embed.NewConfig()
	c.Dir = dir
	anywhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenClientUrls, c.AdvertiseClientUrls = anywhere, anywhere
	c.ListenPeerUrls, c.AdvertisePeerUrls = anywhere, anywhere
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	quiet := zap.NewProductionConfig()
	quiet.Level = zap.NewAtomicLevelAt(zap.ErrorLevel)
	log, err := quiet.Build()
	if err != nil {
		return err
	}
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	defer e.Close()
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		return err
	}
	slog.New(slog.NewJSONHandler(os.Stderr, nil)).Info("serving", "address", e.Clients[0].Addr().String())
	return <-e.Err()
}

// etcd is one member with its clients, each with a connection of its own.
type etcd struct {
	*process.Process
	callers []*caller
}

// startEtcd starts this program again, as etcd.
func startEtcd(t testing.TB) *etcd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = process.Environ(memberVariable + "=" + t.TempDir())
	s := &etcd{Process: process.Serve(t, cmd)}
	for range most {
		c, err := s.dial()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		s.callers = append(s.callers, &caller{Client: c})
	}
	return s
}

// caller is a client that makes one call at a time.
type caller struct {
	*etcdclient.Client
	session *concurrency.Session
	leases  []etcdclient.LeaseID
}

// dial returns a client, which connects with the first call.
func (s *etcd) dial() (*etcdclient.Client, error) {
	return etcdclient.New(etcdclient.Config{Endpoints: []string{s.URL}, Logger: zap.NewNop()})
}

func newSession(c *etcdclient.Client) (*concurrency.Session, error) {
	return concurrency.NewSession(c, concurrency.WithTTL(int(longLease.Seconds())))
}

// cycles campaigns and resigns in an existing session.
func (s *etcd) cycles(_ context.Context, i int) (_ operation, err error) {
	c := s.callers[i]
	if c.session == nil {
		c.session, err = newSession(c.Client)
	}
	return func(ctx context.Context) (int, error) {
		e := concurrency.NewElection(c.session, fmt.Sprintf("cycle-%d", i))
		if err := e.Campaign(ctx, fmt.Sprintf("agent-%d", i)); err != nil {
			return 0, err
		}
		return 1, e.Resign(ctx)
	}, err
}

// puts writes a key.
func (s *etcd) puts(_ context.Context, i int) (operation, error) {
	c := s.callers[i]
	key, value := fmt.Sprintf("shard-%d", i), fmt.Sprintf("agent-%d", i)
	return func(ctx context.Context) (int, error) {
		_, err := c.Put(ctx, key, value)
		return 1, err
	}, nil
}

// hold makes the i-th caller hold at least n leases.
func (s *etcd) hold(ctx context.Context, i, n int) (*caller, error) {
	c := s.callers[i]
	for len(c.leases) < n {
		g, err := c.Grant(ctx, int64(longLease.Seconds()))
		if err != nil {
			return nil, err
		}
		c.leases = append(c.leases, g.ID)
	}
	return c, nil
}

// keepAlives keeps one lease alive, by the client's KeepAliveOnce.
func (s *etcd) keepAlives(ctx context.Context, i int) (operation, error) {
	c, err := s.hold(ctx, i, 1)
	return func(ctx context.Context) (int, error) {
		_, err := c.KeepAliveOnce(ctx, c.leases[0])
		return 1, err
	}, err
}

// stream keeps leases alive over one open stream: it sends for all of them, then reads all answers.
func (s *etcd) stream(ctx context.Context, i int) (operation, error) {
	c, err := s.hold(ctx, i, batchSize)
	if err != nil {
		return nil, err
	}
	stream, err := pb.NewLeaseClient(c.ActiveConnection()).LeaseKeepAlive(ctx)
	return func(context.Context) (int, error) { return keepAlive(stream, c.leases[:batchSize]) }, err
}

func keepAlive(stream pb.Lease_LeaseKeepAliveClient, leases []etcdclient.LeaseID) (int, error) {
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
func (s *etcd) reads(options ...etcdclient.OpOption) prepare {
	return func(ctx context.Context, i int) (operation, error) {
		put, err := s.puts(ctx, i)
		if err == nil {
			_, err = put(ctx)
		}
		if err != nil {
			return nil, err
		}
		c, key := s.callers[i], fmt.Sprintf("shard-%d", i)
		return func(ctx context.Context) (int, error) {
			got, err := c.Get(ctx, key, options...)
			if err == nil && len(got.Kvs) != 1 {
				err = fmt.Errorf("%s: %d keys", key, len(got.Kvs))
			}
			return 1, err
		}, nil
	}
}

// etcdCandidate campaigns for one election, in a session over a connection of its own.
type etcdCandidate struct {
	*concurrency.Election
	session *concurrency.Session
	id      string
}

func (s *etcd) candidate(id, election string) (candidate, error) {
	c, err := s.dial()
	if err != nil {
		return nil, err
	}
	session, err := newSession(c)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &etcdCandidate{concurrency.NewElection(session, election), session, id}, nil
}

func (c *etcdCandidate) campaign(ctx context.Context) error { return c.Campaign(ctx, c.id) }
func (c *etcdCandidate) resign(ctx context.Context) error   { return c.Resign(ctx) }
func (c *etcdCandidate) close() {
	c.session.Close()
	c.session.Client().Close()
}
