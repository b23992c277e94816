package pubsub_test

import (
	"context"
	"log/slog"
	"path"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"regent/leadership/instance/pubsub"
)

// reactor stands before a call of the fake; it answers if its error is not nil.
type reactor func(request any) error

func (r reactor) React(request any) (handled bool, reply any, err error) {
	return false, nil, r(request)
}

func before(call string, r reactor) pstest.ServerReactorOption {
	return pstest.ServerReactorOption{FuncName: call, Reactor: r}
}

// fault stands between an instance and the service, in its own process.
type fault struct {
	mu    sync.Mutex
	calls map[string]unary
}

// unary is a call; invoke carries it out.
type unary func(ctx context.Context, invoke func(context.Context) error) error

func newFault() *fault { return &fault{calls: make(map[string]unary)} }

// set puts f in the way of a call; nil takes it away.
func (f *fault) set(call string, u unary) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[call] = u
}

func (f *fault) get(method string) unary {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[path.Base(method)]
}

func (f *fault) intercept(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	invoke := func(ctx context.Context) error { return invoker(ctx, method, request, reply, cc, opts...) }
	if u := f.get(method); u != nil {
		return u(ctx, invoke)
	}
	return invoke(ctx)
}

func with(f *fault) func(*pubsub.Config) {
	return dialOption(grpc.WithChainUnaryInterceptor(f.intercept))
}

// hang is a service that does not answer.
func hang(ctx context.Context, _ func(context.Context) error) error {
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

// receiving stands before each Recv of a stream; it answers if its error is not nil. n counts the
// streams from 1.
type receiving func(ctx context.Context, n int) error

func (r receiving) intercept() func(*pubsub.Config) {
	var mu sync.Mutex
	streams := 0
	return dialOption(grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		streamer grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		s, err := streamer(ctx, desc, cc, method, opts...)
		mu.Lock()
		defer mu.Unlock()
		streams++
		return &intercepted{s, streams, r}, err
	}))
}

type intercepted struct {
	grpc.ClientStream
	n      int
	before receiving
}

func (s *intercepted) RecvMsg(m any) error {
	if err := s.before(s.Context(), s.n); err != nil {
		return err
	}
	return s.ClientStream.RecvMsg(m)
}

// journal is a log that a test reads.
type journal chan string

func newJournal() journal { return make(journal, 1000) }

func (j journal) config(c *pubsub.Config) { c.Log = slog.New(j) }

// Enabled implements slog.Handler.
func (j journal) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (j journal) Handle(_ context.Context, r slog.Record) error {
	select {
	case j <- r.Message:
	default:
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (j journal) WithAttrs([]slog.Attr) slog.Handler { return j }

// WithGroup implements slog.Handler.
func (j journal) WithGroup(string) slog.Handler { return j }

// await waits until the message is logged, and returns those before it.
func (j journal) await(tb testing.TB, message string) (others []string) {
	tb.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		select {
		case m := <-j:
			if m == message {
				return others
			}
			others = append(others, m)
		case <-timeout.C:
			tb.Fatalf("waited in vain for %q in the log; there was %q", message, others)
		}
	}
}
