package spanner

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"regent/leadership"
)

// fate tells whether a transaction's commit may have been done although no reply says so. The
// client's own errors do not tell that: it repeats a commit by itself, and the last answer hides
// that an earlier one was lost.
type fate struct{ unknown atomic.Bool }

type fateKey struct{}

// watched returns a context whose commits are watched, and their fate.
func watched(ctx context.Context) (context.Context, *fate) {
	f := new(fate)
	return context.WithValue(ctx, fateKey{}, f), f
}

// watchCommit notes each commit that was sent and got no conclusive answer.
func watchCommit(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	f, _ := ctx.Value(fateKey{}).(*fate)
	if f == nil || method != spannerpb.Spanner_Commit_FullMethodName {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err != nil && !settles(status.Code(err)) {
		f.unknown.Store(true)
	}
	return err
}

// settles reports whether a commit that failed with the code was certainly not done: the server
// examined and refused it.
func settles(c codes.Code) bool {
	switch c {
	case codes.Aborted, codes.AlreadyExists, codes.FailedPrecondition, codes.InvalidArgument, codes.NotFound, codes.OutOfRange,
		codes.PermissionDenied, codes.ResourceExhausted, codes.Unauthenticated, codes.Unimplemented:
		return true
	}
	return false
}

// Both end a transaction without a Commit.
var (
	// errRefused: the caller gets an error.
	errRefused = errors.New("refused")
	// errNothingToWrite: the change is already made, perhaps by an earlier run whose reply was
	// lost.
	errNothingToWrite = errors.New("nothing to write")
)

// transact runs body in a read-write transaction and returns the time of its commit. body may run
// more than once: a later run may be refused because an earlier one, whose reply was lost, was
// done. Errors are errNothingToWrite, if body returned that, errRefused, if it did and certainly
// nothing was written, or carry StoreUnavailable or OutcomeUnknown. All runs together take patience
// at most (0: no limit but ctx's).
func (s *Store) transact(
	ctx context.Context, op, subject string, patience time.Duration, body func(context.Context, *spanner.ReadWriteTransaction) error,
) (time.Time, error) {
	if err := s.turns.take(ctx); err != nil {
		return time.Time{}, failure(ctx, op, subject, leadership.StoreUnavailable, err)
	}
	defer s.turns.give()
	if patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	ctx, f := watched(ctx)
	resp, err := s.client.ReadWriteTransactionWithOptions(ctx, body, spanner.TransactionOptions{TransactionTag: tag(op)})
	switch {
	case err == nil:
		return resp.CommitTs.UTC(), nil
	case errors.Is(err, errNothingToWrite):
		return time.Time{}, errNothingToWrite
	case errors.Is(err, errRefused) && !f.unknown.Load():
		return time.Time{}, errRefused
	case errors.Is(err, errRefused):
		err = errors.New("the reply to a commit was lost, and the next run was refused") // not errRefused: this may have been done
		return time.Time{}, failure(ctx, op, subject, leadership.OutcomeUnknown, err)
	case f.unknown.Load():
		return time.Time{}, failure(ctx, op, subject, leadership.OutcomeUnknown, err)
	}
	return time.Time{}, failure(ctx, op, subject, leadership.StoreUnavailable, err)
}

// failure returns the error of a call that Spanner did not answer, or answered with err. op and
// subject name the operation and its object.
func failure(ctx context.Context, op, subject string, code leadership.Code, err error) error {
	end := ctx.Err()
	if end == nil && spanner.ErrCode(err) == codes.DeadlineExceeded {
		end = context.DeadlineExceeded // the server's timer for ctx may run out before our own
	}
	if end == nil || errors.Is(err, end) {
		return fmt.Errorf("spanner: %s %s: %w: %w", op, subject, code, err)
	}
	return fmt.Errorf("spanner: %s %s: %w: %w: %w", op, subject, code, end, err)
}

// tag names an operation in Spanner's statistics of queries, transactions and locks.
func tag(op string) string { return "app=regent,action=" + op }
