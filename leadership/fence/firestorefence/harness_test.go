package firestorefence_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	apiv1 "cloud.google.com/go/firestore/apiv1"
	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"regent/emulators"
	"regent/leadership"
	"regent/leadership/fence"
)

// project is a project of the emulator that no other test uses.
type project struct {
	host, id string
}

func newProject(tb testing.TB) project {
	tb.Helper()
	return project{host: emulators.Firestore(tb), id: emulators.Name(tb)}
}

func (h project) database() string { return "projects/" + h.id + "/databases/(default)" }

// dial connects to the emulator. The client's own emulator connection takes no options.
func (h project) dial(tb testing.TB, extra ...grpc.DialOption) option.ClientOption {
	tb.Helper()
	options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(asOwner{})}
	conn, err := grpc.NewClient("passthrough:///"+h.host, append(options, extra...)...)
	require.NoError(tb, err)
	tb.Cleanup(func() { conn.Close() })
	return option.WithGRPCConn(conn)
}

func (h project) client(tb testing.TB, extra ...grpc.DialOption) *firestore.Client {
	tb.Helper()
	c, err := firestore.NewClient(tb.Context(), h.id, h.dial(tb, extra...))
	require.NoError(tb, err)
	return c
}

func onCommit(do func(r *firestorepb.CommitRequest, commit func() error) error) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		call := func() error { return invoke(ctx, method, req, reply, cc, opts...) }
		if r, ok := req.(*firestorepb.CommitRequest); ok {
			return do(r, call)
		}
		return call()
	})
}

// rawClient returns a client that can end other clients' transactions.
func (h project) rawClient(tb testing.TB) *apiv1.Client {
	tb.Helper()
	c, err := apiv1.NewClient(tb.Context(), h.dial(tb))
	require.NoError(tb, err)
	return c
}

// asOwner makes calls pass the emulator's security rules.
type asOwner struct{}

func (asOwner) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer owner"}, nil
}

func (asOwner) RequireTransportSecurity() bool { return false }

func lease(token leadership.Token) fence.Mark { return fence.Mark{Election: "jobs", Token: token} }

// put writes a document of data that is never read.
func put(c *firestore.Client, id string, token int64) function {
	return func(_ context.Context, tx *firestore.Transaction) error {
		return tx.Set(c.Collection("data").Doc(id), map[string]any{"token": token})
	}
}

func must(tb testing.TB, c *firestore.Client, f function, options ...firestore.TransactionOption) {
	tb.Helper()
	assert.NoError(tb, c.RunTransaction(tb.Context(), f, options...))
}

func wantStale(tb testing.TB, err error, current leadership.Token) {
	tb.Helper()
	var refused *leadership.Error
	if !errors.As(err, &refused) || refused.Code != leadership.TokenStale {
		tb.Fatalf("got %v, want TOKEN_STALE", err)
	}
	if refused.Lease.Token != current {
		tb.Errorf("the refusal names token %d, want %d", refused.Lease.Token, current)
	}
}

func wantWritten(tb testing.TB, c *firestore.Client, want map[string]int64) {
	tb.Helper()
	docs, err := c.Collection("data").Documents(tb.Context()).GetAll()
	require.NoError(tb, err)
	got := map[string]int64{}
	for _, d := range docs {
		got[d.Ref.ID], _ = d.Data()["token"].(int64)
	}
	assert.Empty(tb, cmp.Diff(want, got), "what was written (-want +got)")
}

func wantFields(tb testing.TB, doc *firestore.DocumentRef, want map[string]any) {
	tb.Helper()
	snap, err := doc.Get(tb.Context())
	require.NoError(tb, err)
	if diff := cmp.Diff(want, snap.Data()); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", doc.Path, diff)
	}
}

func updated(tb testing.TB, doc *firestore.DocumentRef) time.Time {
	tb.Helper()
	snap, err := doc.Get(tb.Context())
	require.NoError(tb, err)
	return snap.UpdateTime
}
