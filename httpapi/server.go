package httpapi

import (
	"net/http"
	"time"
)

// Server returns an HTTP server for the handler, with limits against slow and greedy callers. It
// does not listen yet. Calls that wait and streams set deadlines of their own. displaced, if it is
// not nil, is called for each connection that was closed to make room for another one; it must not
// block.
func Server(h http.Handler, displaced func()) *http.Server {
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
		// A load balancer of Google Cloud keeps an idle connection for 600 s, and answers 502 if it
		// is closed under a request (its documentation, "Timeouts and retries", asks for 620 s). An
		// idle connection is closed sooner to make room for a new one.
		IdleTimeout: 620 * time.Second,
		// 8 KiB for path and query, and as much for credentials; the default is 1 MiB. Over
		// HTTP/1.1 net/http allows 4 KiB more.
		MaxHeaderBytes: 16 << 10,
		// An HTTP/2 connection must not stay open for a peer that is gone.
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingTimeout, PingTimeout: pingTimeout, WriteByteTimeout: writeTimeout},
	}
	LimitConnections(server, MostConnections(), displaced)
	return server
}

// writeTimeout bounds a reply, from the end of the request's headers.
const writeTimeout = 30 * time.Second

// pingTimeout is how long an HTTP/2 connection may be silent before it is pinged, and how long it
// then has to answer.
const pingTimeout = 15 * time.Second
