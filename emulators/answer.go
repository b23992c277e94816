package emulators

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// question returns a cheap read that only an emulator of this kind answers. Each is about one
// resource, whose name is field 1 of the request.
func (k Kind) question() (method, resource string) {
	switch k {
	case KindFirestore:
		return "/google.firestore.v1.Firestore/ListCollectionIds", "projects/regent-probe/databases/(default)/documents"
	case KindSpanner:
		return "/google.spanner.admin.instance.v1.InstanceAdmin/ListInstanceConfigs", "projects/regent-probe"
	default:
		return "/google.pubsub.v1.Publisher/ListTopics", "projects/regent-probe"
	}
}

// awaitAnswer blocks until the emulator at host has answered its kind's question. It returns an
// error if another server answers, or if ctx ends first.
func awaitAnswer(ctx context.Context, kind Kind, host string) error {
	conn, err := grpc.NewClient("passthrough:///"+host,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.2, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		err := ask(ctx, conn, kind)
		if ctx.Err() != nil {
			return fmt.Errorf("no answer at %s: %w", host, context.Cause(ctx))
		}
		if status.Code(err) != codes.Unavailable {
			return explain(kind, host, err)
		}
	}
}

// ask sends the question. Every request of question has the wire format of a StringValue, and the
// answer is ignored, so the APIs' messages are not needed. It waits for a connection at gRPC's own
// retry pace, so awaitAnswer may call it again at once.
func ask(ctx context.Context, conn *grpc.ClientConn, kind Kind) error {
	method, resource := kind.question()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer owner")
	return conn.Invoke(ctx, method, wrapperspb.String(resource), &emptypb.Empty{}, grpc.WaitForReady(true))
}

func explain(kind Kind, host string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the server at %s is not a %s emulator: %w", host, kind.Title(), err)
}
