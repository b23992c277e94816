package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"regent/httpapi/access/authn"
	"regent/leadership"
)

// inside is a transport to a handler in the same process. The handler gets the context of the
// request, which has the authenticated caller.
type inside struct{ handler http.Handler }

// RoundTrip calls the handler. It returns once the handler has begun its reply; the body of the
// response is what the handler writes.
func (i inside) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	asked := r.Context()
	ctx, cancel := departing(asked)
	r = r.WithContext(withSpan(ctx))
	r.Host, r.RequestURI, r.RemoteAddr = r.URL.Host, r.URL.RequestURI(), "inside"
	if r.Body == nil {
		r.Body = http.NoBody
	}
	out, in := io.Pipe()
	w := &insideWriter{header: http.Header{}, body: in, begun: make(chan struct{})}
	go func() {
		defer cancel()
		defer r.Body.Close()
		defer func() {
			// a handler panics only to end the connection; all other panics it answers itself
			if recover() != nil {
				in.CloseWithError(io.ErrUnexpectedEOF)
			}
			w.WriteHeader(http.StatusOK)
			in.Close()
		}()
		i.handler.ServeHTTP(w, r)
	}()
	select {
	case <-w.begun:
	case <-asked.Done(): // the handler will end soon
		out.Close()
		return nil, context.Cause(asked)
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: insideBody{out, cancel}, ContentLength: -1, Request: r,
	}, nil
}

// departing returns a context that ends with ctx. If ctx ends by its deadline, the cause is
// context.Canceled, as if the client had disconnected, so that the handler reports no failure.
// Other causes, such as the stop of the server, are kept.
func departing(ctx context.Context) (context.Context, context.CancelFunc) {
	call, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if errors.Is(cause, context.DeadlineExceeded) {
			cause = context.Canceled
		}
		end(cause)
	})
	return call, func() {
		stop()
		end(nil)
	}
}

// insideBody ends the handler's call when it is closed.
type insideBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b insideBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// insideWriter passes on the handler's reply.
type insideWriter struct {
	header http.Header
	body   *io.PipeWriter
	begun  chan struct{} // closed once sent and status are set

	once   sync.Once
	sent   http.Header
	status int
}

func (w *insideWriter) Header() http.Header { return w.header }

func (w *insideWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.sent, w.status = w.header.Clone(), status
		close(w.begun)
	})
}

func (w *insideWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// FlushError is for http.ResponseController. It does nothing, because nothing is buffered.
func (w *insideWriter) FlushError() error {
	w.WriteHeader(http.StatusOK)
	return nil
}

// requestSpan is the span of the request of a tool call.
type requestSpan struct {
	span trace.SpanContext
	over <-chan struct{} // closed at the end of the request
}

type requestSpanKey struct{}

// withSpan returns the context with the span of its request, unless that request is over, because
// the renewals of a lease are not part of the call that began it.
func withSpan(ctx context.Context) context.Context {
	if request, ok := ctx.Value(requestSpanKey{}).(requestSpan); ok {
		select {
		case <-request.over:
		default:
			return trace.ContextWithSpanContext(ctx, request.span)
		}
	}
	return ctx
}

// caller returns a context with the principal, the request id and the span of ctx, but not its end.
// A lease is renewed in such a context long after its call.
func caller(ctx context.Context) context.Context {
	clean := leadership.WithRequestID(context.Background(), leadership.RequestID(ctx))
	p, ok := authn.From(ctx)
	if ok {
		clean = authn.With(clean, p)
	}
	if actor := leadership.Actor(ctx); actor != "" {
		clean = leadership.WithActor(clean, actor, p.Pinned())
	}
	if request, ok := ctx.Value(requestKey{}).(context.Context); ok {
		clean = context.WithValue(clean, requestSpanKey{}, requestSpan{trace.SpanContextFromContext(request), request.Done()})
	}
	return clean
}
