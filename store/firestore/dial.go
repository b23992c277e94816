package firestore

import (
	"context"
	"net/url"
	"strings"
	"time"

	apiv1 "cloud.google.com/go/firestore/apiv1"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
)

// connections is the number of connections to Firestore. One carries about 100 concurrent calls,
// fewer than a service needs.
const connections = 4

// dial makes the low-level client. The high-level one hides what this store needs: commit times,
// read times, BatchWrite.
func dial(ctx context.Context, db database, emulator string, extra []grpc.DialOption) (*apiv1.Client, error) {
	options, err := clientOptions(emulator, append(db.route(), extra...))
	if err != nil {
		return nil, err
	}
	client, err := apiv1.NewClient(ctx, options...)
	if err != nil {
		return nil, err
	}
	// No retries below this package: a commit that the client sent twice would fail the second
	// time, because the first one moved its guard, and a change that was made would be reported as
	// refused. (gRPC's own retries are switched off as each connection is made.)
	client.CallOptions = &apiv1.CallOptions{}
	return client, nil
}

func clientOptions(emulator string, extra []grpc.DialOption) ([]option.ClientOption, error) {
	if emulator != "" {
		conn, err := dialEmulator(emulator, extra)
		return []option.ClientOption{option.WithGRPCConn(conn)}, err
	}
	options := []option.ClientOption{
		option.WithGRPCConnectionPool(connections),
		// With this, Linux closes a connection whose data is not acknowledged within Timeout;
		// otherwise a connection that died silently would fail every call for a quarter of an hour.
		option.WithGRPCDialOption(grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: rpcTimeout})),
		option.WithGRPCDialOption(grpc.WithDisableRetry()),
	}
	for _, o := range extra {
		options = append(options, option.WithGRPCDialOption(o))
	}
	return options, nil
}

func dialEmulator(host string, extra []grpc.DialOption) (*grpc.ClientConn, error) {
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithPerRPCCredentials(owner{}),
		grpc.WithNoProxy(),
		grpc.WithDisableRetry(),
	}
	return grpc.NewClient("passthrough:///"+host, append(options, extra...)...)
}

// owner makes a call to an emulator pass its security rules, as a service account's call passes
// Firestore's.
type owner struct{}

func (owner) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer owner"}, nil
}

func (owner) RequireTransportSecurity() bool { return false }

// The headers by which Google's front end finds a database. The low-level client sends the second
// in a form that is refused for a named database; the high-level one sends both as below.
const (
	resourceHeader = "google-cloud-resource-prefix"
	routingHeader  = "x-goog-request-params"
)

// route returns the interceptors that put the database's headers on every call.
func (d database) route() []grpc.DialOption {
	parts := strings.Split(string(d), "/") // projects/P/databases/D
	params := "project_id=" + url.QueryEscape(parts[1]) + "&database_id=" + url.QueryEscape(parts[3])
	routed := func(ctx context.Context) context.Context {
		md, _ := metadata.FromOutgoingContext(ctx)
		md = metadata.Join(md) // a copy
		md.Set(resourceHeader, string(d))
		md.Set(routingHeader, params)
		return metadata.NewOutgoingContext(ctx, md)
	}
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(
			ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
		) error {
			return invoke(routed(ctx), method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(
			ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption,
		) (grpc.ClientStream, error) {
			return stream(routed(ctx), desc, cc, method, opts...)
		}),
	}
}
