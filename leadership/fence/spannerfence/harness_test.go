package spannerfence_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"regent/emulators"
	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/spannerfence"
	store "regent/store/spanner"
)

// testDatabase is a database of the emulator that no other test uses: the emulator runs one
// read-write transaction at a time in each.
type testDatabase struct {
	host, path string
}

// dataDDL is a table of the caller's, which leaders write to.
const dataDDL = `CREATE TABLE Data (Id INT64 NOT NULL, Token INT64 NOT NULL) PRIMARY KEY (Id)`

// newDatabase creates a database with Data and the tables of ddl, by default Fences.
func newDatabase(tb testing.TB, ddl ...string) testDatabase {
	tb.Helper()
	h := testDatabase{host: emulators.Spanner(tb), path: "projects/regent-test/instances/" + emulators.Name(tb) + "/databases/test"}
	// creates the database as well
	require.NoError(tb, store.Migrate(tb.Context(), store.Config{Database: h.path, EmulatorHost: h.host}))
	if len(ddl) == 0 {
		ddl = []string{spannerfence.DDL}
	}
	admin, err := database.NewDatabaseAdminClient(tb.Context(), h.options()...)
	require.NoError(tb, err)
	defer admin.Close()
	op, err := admin.UpdateDatabaseDdl(tb.Context(), &databasepb.UpdateDatabaseDdlRequest{Database: h.path, Statements: append(ddl, dataDDL)})
	if err == nil {
		err = op.Wait(tb.Context())
	}
	require.NoError(tb, err)
	return h
}

func (h testDatabase) options(extra ...grpc.DialOption) []option.ClientOption {
	options := []option.ClientOption{option.WithEndpoint("passthrough:///" + h.host), option.WithoutAuthentication()}
	for _, d := range append(extra, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(abortLostUnary), grpc.WithChainStreamInterceptor(abortLostStream)) {
		options = append(options, option.WithGRPCDialOption(d))
	}
	return options
}

func (h testDatabase) client(tb testing.TB, extra ...grpc.DialOption) *spanner.Client {
	tb.Helper()
	c, err := spanner.NewClientWithConfig(tb.Context(), h.path, spanner.ClientConfig{DisableNativeMetrics: true}, h.options(extra...)...)
	require.NoError(tb, err)
	tb.Cleanup(c.Close)
	return c
}

// Emulators up to 1.5.37 do not support multiplexed sessions: of two transactions on one session
// they end the older, and answer it with one of these errors, where Cloud Spanner answers ABORTED.

func abortLost(err error) error {
	s := status.Convert(err)
	for _, text := range []string{"Transaction not found", "Invalid transaction ID", "committed or rolledback", "after it has been rolled back"} {
		if strings.Contains(s.Message(), text) {
			return status.Error(codes.Aborted, s.Message())
		}
	}
	return err
}

func abortLostUnary(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	return abortLost(invoke(ctx, method, req, reply, cc, opts...))
}

func abortLostStream(
	ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, abortLost(err)
	}
	return abortingStream{stream}, nil
}

type abortingStream struct{ grpc.ClientStream }

func (s abortingStream) RecvMsg(m any) error { return abortLost(s.ClientStream.RecvMsg(m)) }

// statements records the queries and DML statements that a client sends.
type statements struct {
	mu   sync.Mutex
	sent []*spannerpb.ExecuteSqlRequest // guarded by mu
}

func (s *statements) option() grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(
		ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		stream, err := open(ctx, desc, cc, method, opts...)
		return notedStream{stream, s}, err
	})
}

type notedStream struct {
	grpc.ClientStream
	to *statements
}

func (s notedStream) SendMsg(m any) error {
	if req, ok := m.(*spannerpb.ExecuteSqlRequest); ok {
		s.to.mu.Lock()
		s.to.sent = append(s.to.sent, req)
		s.to.mu.Unlock()
	}
	return s.ClientStream.SendMsg(m)
}

func lease(token leadership.Token) fence.Mark { return fence.Mark{Election: "jobs", Token: token} }

// writes returns a transaction that checks and then writes a row of Data.
func writes(table spannerfence.Table, token leadership.Token, id int64) func(context.Context, *spanner.ReadWriteTransaction) error {
	return func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if err := table.Check(ctx, tx, "accounts", lease(token)); err != nil {
			return err
		}
		return tx.BufferWrite([]*spanner.Mutation{data(id, token)})
	}
}

func data(id int64, token leadership.Token) *spanner.Mutation {
	return spanner.InsertOrUpdate("Data", []string{"Id", "Token"}, []any{id, int64(token)})
}

func must(tb testing.TB, c *spanner.Client, f func(context.Context, *spanner.ReadWriteTransaction) error) {
	tb.Helper()
	_, err := c.ReadWriteTransaction(tb.Context(), f)
	require.NoError(tb, err)
}

func written(tb testing.TB, c *spanner.Client) map[int64]leadership.Token {
	tb.Helper()
	rows := map[int64]leadership.Token{}
	err := c.Single().Query(tb.Context(), spanner.NewStatement("SELECT Id, Token FROM Data")).Do(func(r *spanner.Row) error {
		var id, token int64
		err := r.Columns(&id, &token)
		rows[id] = leadership.Token(token)
		return err
	})
	require.NoError(tb, err)
	return rows
}

func marks(tb testing.TB, c *spanner.Client) map[string]fence.Mark {
	tb.Helper()
	rows := map[string]fence.Mark{}
	err := c.Single().Query(tb.Context(), spanner.NewStatement("SELECT Resource, Election, FencingToken FROM Fences")).Do(func(r *spanner.Row) error {
		var resource, election string
		var token int64
		err := r.Columns(&resource, &election, &token)
		rows[resource] = fence.Mark{Election: leadership.Election(election), Token: leadership.Token(token)}
		return err
	})
	require.NoError(tb, err)
	return rows
}
