package firestore

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"regent/leadership"
)

var (
	errContention = errors.New("others changed it at every attempt")
	errIncomplete = errors.New("the reply is incomplete")
	errUnsent     = errors.New("it was not sent")
)

// failure returns the error of an operation. If its context has ended, errors.Is finds the
// context's error as well as gRPC's.
func failure(ctx context.Context, operation string, code leadership.Code, cause error) error {
	ended := ctx.Err()
	if ended == nil && status.Code(cause) == codes.DeadlineExceeded {
		ended = context.DeadlineExceeded
	}
	if ended != nil && !errors.Is(cause, ended) {
		cause = fmt.Errorf("%w: %w", ended, cause)
	}
	return fmt.Errorf("firestore: %s: %w: %w", operation, code, cause)
}

// unavailable is the error of an operation that did nothing.
func unavailable(ctx context.Context, operation string, cause error) error {
	return failure(ctx, operation, leadership.StoreUnavailable, cause)
}

// unlessSent marks the error of a call that was never sent, because it got no connection: gRPC then
// leaves its peer empty.
func unlessSent(to peer.Peer, cause error) error {
	if cause == nil || to.Addr != nil {
		return cause
	}
	return fmt.Errorf("%w: %w", errUnsent, cause)
}

// unwritten returns the error of an operation whose write was not done, or may not have been.
func unwritten(ctx context.Context, operation string, cause error) error {
	return failure(ctx, operation, writeCode(cause), cause)
}

func writeCode(cause error) leadership.Code {
	if errors.Is(cause, errUnsent) {
		return leadership.StoreUnavailable
	}
	switch status.Code(cause) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Unknown, codes.DataLoss:
		return leadership.OutcomeUnknown
	}
	return leadership.StoreUnavailable // Firestore answered, and refused
}

// contended reports whether a write was refused because the document has changed since the writer
// read it, or because another writer holds it. Then nothing was done.
func contended(cause error) bool {
	switch status.Code(cause) {
	case codes.FailedPrecondition, codes.AlreadyExists, codes.NotFound, codes.Aborted:
		return true
	}
	return false
}
