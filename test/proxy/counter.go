package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
)

// Counter passes gRPC calls of all methods on to a server, and counts them by method.
type Counter struct {
	addr   string
	server *grpc.ClientConn

	mu    sync.Mutex // guards calls
	calls Calls
}

// Calls says how often each method was called, by the last part of its name.
type Calls map[string]int

// NewCounter returns a counter in front of the gRPC server at host:port, which uses no TLS. It
// lasts until the test ends.
func NewCounter(tb testing.TB, target string) *Counter {
	tb.Helper()
	server, err := grpc.NewClient("passthrough:///"+target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(verbatim{}), grpc.MaxCallRecvMsgSize(maxMessage)), grpc.WithDisableRetry(), grpc.WithNoProxy())
	if err != nil {
		tb.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	c := &Counter{addr: listener.Addr().String(), server: server, calls: Calls{}}
	front := grpc.NewServer(grpc.ForceServerCodecV2(verbatim{}), grpc.MaxRecvMsgSize(maxMessage), grpc.UnknownServiceHandler(c.pass))
	var serving sync.WaitGroup
	serving.Go(func() { front.Serve(listener) })
	tb.Cleanup(func() {
		front.Stop()
		serving.Wait()
		server.Close()
	})
	return c
}

const maxMessage = 64 << 20

// Addr is where the counter listens.
func (c *Counter) Addr() string { return c.addr }

// Take returns the calls that have begun since the last Take.
func (c *Counter) Take() Calls {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.calls
	c.calls = Calls{}
	return taken
}

// Total is the number of all calls.
func (c Calls) Total() (n int) {
	for _, calls := range c {
		n += calls
	}
	return n
}

// Plus is the sum of both; nil if neither was counted.
func (c Calls) Plus(others Calls) Calls {
	if c == nil {
		return maps.Clone(others)
	}
	sum := maps.Clone(c)
	for name, n := range others {
		sum[name] += n
	}
	return sum
}

// String is the calls by name.
func (c Calls) String() string {
	switch {
	case c == nil:
		return "not counted"
	case len(c) == 0:
		return "none"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, c[name]))
	}
	return strings.Join(parts, ", ")
}

func (c *Counter) count(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[path.Base(method)]++
}

// pass carries one call both ways. A unary call is a stream of one message.
func (c *Counter) pass(_ any, in grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(in)
	c.count(method)
	ctx, cancel := context.WithCancel(in.Context())
	defer cancel()
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, md)
	}
	out, err := c.server.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		if copyMessages(out, in) == nil {
			out.CloseSend()
		} else {
			cancel()
		}
	}()
	if header, err := out.Header(); err == nil {
		in.SetHeader(header)
	}
	err = copyMessages(in, out)
	in.SetTrailer(out.Trailer())
	return err
}

// stream is one end of a call.
type stream interface {
	SendMsg(any) error
	RecvMsg(any) error
}

// copyMessages copies until from ends.
func copyMessages(to, from stream) error {
	for {
		var message []byte
		switch err := from.RecvMsg(&message); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := to.SendMsg(message); err != nil {
			return err
		}
	}
}

// verbatim is a codec that leaves messages as they are.
type verbatim struct{}

// Marshal implements encoding.CodecV2.
func (verbatim) Marshal(message any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(message.([]byte))}, nil
}

// Unmarshal implements encoding.CodecV2.
func (verbatim) Unmarshal(data mem.BufferSlice, message any) error {
	*message.(*[]byte) = data.Materialize()
	return nil
}

// Name implements encoding.CodecV2: the content type ends with it.
func (verbatim) Name() string { return "proto" }
