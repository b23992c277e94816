package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
)

// relay passes gRPC calls of all methods on to a server.
type relay struct {
	addr    string
	server  *grpc.ClientConn
	front   *grpc.Server
	serving sync.WaitGroup
	// admit is called as a call begins. An error refuses it; the end of the context ends it, with
	// its cause.
	admit func(ctx context.Context, method string) (context.Context, error)
}

// newRelay returns a relay to the gRPC server at host:port, which uses no TLS. It listens on a
// loopback port of its own until Close.
func newRelay(target string, admit func(context.Context, string) (context.Context, error)) (*relay, error) {
	server, err := grpc.NewClient("passthrough:///"+target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(verbatim{}), grpc.MaxCallRecvMsgSize(maxMessage)), grpc.WithDisableRetry(), grpc.WithNoProxy())
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	r := &relay{addr: listener.Addr().String(), server: server, admit: admit}
	r.front = grpc.NewServer(grpc.ForceServerCodecV2(verbatim{}), grpc.MaxRecvMsgSize(maxMessage), grpc.UnknownServiceHandler(r.pass))
	r.serving.Go(func() { r.front.Serve(listener) })
	return r, nil
}

const maxMessage = 64 << 20

// Addr returns the address of the relay.
func (r *relay) Addr() string { return r.addr }

// Close ends all calls and stops listening.
func (r *relay) Close() {
	r.front.Stop()
	r.serving.Wait()
	r.server.Close()
}

// pass carries one call both ways. A unary call is a stream of one message.
func (r *relay) pass(_ any, in grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(in)
	ctx, cancel := context.WithCancel(in.Context())
	defer cancel()
	ctx, err := r.admit(ctx, method)
	if err != nil {
		return err
	}
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, md)
	}
	out, err := r.server.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
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
	if cause := context.Cause(ctx); ctx.Err() != nil && !errors.Is(cause, ctx.Err()) {
		return cause // the gate's reason, not the caller's cancellation
	}
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
