package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"time"
)

// HTTPServer is an http.Server that takes connections over from net/http while a call waits or is a
// stream. Shut it down, and close it, with the methods of this type: those of the embedded Server
// know of the other connections alone.
type HTTPServer struct {
	*http.Server
	long *longCalls
}

// Shutdown does what that of http.Server does.
func (s *HTTPServer) Shutdown(ctx context.Context) error {
	s.long.stop() // before the first call can end
	err := cmp.Or(s.Server.Shutdown(ctx), s.long.wait(ctx))
	if err == nil {
		s.long.arrivals.close()
	}
	return err
}

// Close does what that of http.Server does.
func (s *HTTPServer) Close() error {
	s.long.stop()
	defer s.long.arrivals.close()
	defer s.long.cut()
	return s.Server.Close()
}

// Server returns an HTTP server for the handler, with limits against slow and greedy callers. It
// does not listen yet. Calls that wait and streams set deadlines of their own. displaced, if it is
// not nil, is called for each connection that was closed to make room for another one; it must not
// block.
func Server(h http.Handler, displaced func()) *HTTPServer {
	if displaced == nil {
		displaced = func() {}
	}
	server := &http.Server{
		Handler: h,
		// An honest caller sends its headers at once.
		ReadHeaderTimeout: 5 * time.Second,
		// The largest body is 2 MiB: a slow connection suffices.
		ReadTimeout: 10 * time.Second,
		// From the end of the headers: the body, 10 s of the service, and a slow reader.
		WriteTimeout: writeTimeout,
		// Leaders call every few seconds and keep their connection; other callers open a new one.
		IdleTimeout: 60 * time.Second,
		// 8 KiB for path and query, and as much for credentials; the default is 1 MiB. Over
		// HTTP/1.1 net/http allows 4 KiB more.
		MaxHeaderBytes: 16 << 10,
		// A connection of many calls must not stay open for a peer that is gone.
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingTimeout, PingTimeout: pingTimeout, WriteByteTimeout: writeTimeout},
	}
	return &HTTPServer{server, newLongCalls(server, limited(server, MostConnections(), displaced))}
}

// writeTimeout bounds a reply, from the end of the request's headers.
const writeTimeout = 30 * time.Second

// pingTimeout is after which silence an HTTP/2 connection is pinged, and how long it has to answer.
const pingTimeout = 15 * time.Second
