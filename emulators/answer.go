package emulators

import (
	"cmp"
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

// awaitAnswer blocks until the emulator at host has answered its kind's question. It returns an
// error if another server answers, or if ctx ends first.
func awaitAnswer(ctx context.Context, kind Kind, host string) error {
	var unknown time.Time // since when the server does not know the question
	for {
		err := ask(ctx, kind, host)
		code := status.Code(err)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("no answer at %s: %w", host, context.Cause(ctx))
		case err == nil:
			return nil
		case code == codes.Unimplemented && (unknown.IsZero() || time.Since(unknown) < settling):
			unknown = cmp.Or(unknown, time.Now())
			time.Sleep(settling / 20)
		case code != codes.Unavailable && code != codes.DeadlineExceeded:
			return fmt.Errorf("the server at %s is not a %s emulator: %w", host, kind.Title(), err)
		}
	}
}

// Firestore's emulator, while it starts, takes some connections and never answers there, and may
// not know its own methods yet.
const (
	patience = 5 * time.Second // for an answer; then another connection is made
	settling = 2 * time.Second // until one that does not know the question is another server
)

// ask sends the question. Every request of question has the wire format of a StringValue, and the
// answer is ignored, so the APIs' messages are not needed. It waits for a connection at gRPC's own
// retry pace, so awaitAnswer may call it again at once.
func ask(ctx context.Context, kind Kind, host string) error {
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
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer owner")
	return conn.Invoke(ctx, partsOf[kind].question, wrapperspb.String(partsOf[kind].resource), &emptypb.Empty{}, grpc.WaitForReady(true))
}
