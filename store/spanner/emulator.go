package spanner

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Up to version 1.5.37 the emulator does not know the multiplexed sessions that the client always
// uses. Of two transactions on one session it ends the older, and answers that transaction with one
// of the errors below. Cloud Spanner would have said ABORTED, and so do these interceptors, for
// then the client runs the transaction again. They are installed only for an emulator: on Cloud
// Spanner these errors would be worth reporting.

// lost reports whether err is the error that an emulator returns for a transaction that it has
// ended.
func lost(err error) bool {
	s, _ := status.FromError(err)
	switch text := s.Message(); s.Code() {
	case codes.NotFound:
		return strings.Contains(text, "Transaction not found")
	case codes.FailedPrecondition:
		return strings.Contains(text, "Invalid transaction ID") ||
			strings.Contains(text, "Cannot read or query using a transaction after it has been committed or rolledback") ||
			strings.Contains(text, "Cannot commit a transaction after it has been rolled back")
	}
	return false
}

func abortLost(err error) error {
	if lost(err) {
		return status.Error(codes.Aborted, status.Convert(err).Message())
	}
	return err
}

func abortLostUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return abortLost(invoke(ctx, method, req, reply, cc, opts...))
}

func abortLostStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, abortLost(err)
	}
	return abortingStream{stream}, nil
}

type abortingStream struct{ grpc.ClientStream }

func (s abortingStream) RecvMsg(m any) error { return abortLost(s.ClientStream.RecvMsg(m)) }

// turns lets one read-write transaction of a Store run at a time, because the emulator runs only
// one in a database: it aborts concurrent ones, and hundreds that retry abort each other for
// minutes. A nil turns, as on Cloud Spanner, lets all run. Stores do not share turns; between them
// the emulator still aborts.
type turns chan struct{}

// take waits for a turn. The error is ctx's.
func (t turns) take(ctx context.Context) error {
	if t == nil {
		return nil
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turns) give() {
	if t != nil {
		<-t
	}
}
