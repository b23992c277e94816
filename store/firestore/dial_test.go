package firestore

import (
	"context"
	"net"
	"path"
	"sync"
	"testing"
	"time"

	apiv1 "cloud.google.com/go/firestore/apiv1"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"regent/leadership/rule"
)

// heard are the headers of each call that a server got.
type heard struct {
	mu    sync.Mutex
	calls map[string]metadata.MD // by method; guarded by mu
}

// listen serves every method of gRPC with a refusal, and keeps what arrives.
func (h *heard) listen(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		md, _ := metadata.FromIncomingContext(stream.Context())
		h.mu.Lock()
		defer h.mu.Unlock()
		h.calls[path.Base(method)] = md
		return status.Error(codes.PermissionDenied, "planted: refused")
	}))
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// callAll makes every kind of call that a store makes.
func callAll(ctx context.Context, s *Store) {
	held := version("jobs", 0)
	s.memory.remember(held, epoch)
	other := version("other", 0)
	s.memory.remember(other, epoch)
	s.Get(ctx, "jobs")
	s.List(ctx, "", "", 10)
	s.Renew(ctx, []rule.Renewal{renewalOf(held.record)})
	s.Renew(ctx, []rule.Renewal{renewalOf(held.record), renewalOf(other.record)})
	s.Since(ctx, time.Unix(1, 0), 10)
}

func TestEveryCallNamesItsDatabaseAsTheHighLevelClientDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, resource, params string }{
		{"", "projects/p-1/databases/(default)", "project_id=p-1&database_id=%28default%29"},
		{"regent", "projects/p-1/databases/regent", "project_id=p-1&database_id=regent"},
	} {
		cfg := Config{Project: "p-1", Database: c.name}
		db, err := cfg.database()
		require.NoError(t, err)
		toEmulator := &heard{calls: map[string]metadata.MD{}}
		cfg.Emulator = toEmulator.listen(t)
		emulated, err := Open(t.Context(), cfg)
		require.NoError(t, err)
		toGoogle := &heard{calls: map[string]metadata.MD{}}
		options, err := clientOptions("", db.route())
		require.NoError(t, err)
		client, err := apiv1.NewClient(t.Context(), append(options, option.WithEndpoint(toGoogle.listen(t)), option.WithoutAuthentication(),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))...)
		require.NoError(t, err)
		google := &Store{client: client, database: db, memory: newMemory(4)}
		for s, h := range map[*Store]*heard{emulated: toEmulator, google: toGoogle} {
			t.Cleanup(func() { s.Close() })
			callAll(t.Context(), s)
			for _, method := range []string{"BatchGetDocuments", "RunQuery", "Commit", "BatchWrite"} {
				got := map[string][]string{resourceHeader: h.calls[method].Get(resourceHeader), routingHeader: h.calls[method].Get(routingHeader)}
				want := map[string][]string{resourceHeader: {c.resource}, routingHeader: {c.params}}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("database %q, %s (-want +got):\n%s", c.name, method, diff)
				}
			}
		}
	}
}
