package httpapi

import (
	"net/http"
	"time"
)

// Server returns an HTTP server for the handler with limits that keep slow and greedy callers from holding on to it. What to listen on
// is the caller's to choose.
//
// Calls that wait, and streams, set deadlines of their own.
func Server(h http.Handler) *http.Server {
	server := &http.Server{
		Handler: h,
		// A caller that drips its headers holds a connection and nothing else; an honest one sends them at once.
		ReadHeaderTimeout: 5 * time.Second,
		// The largest body is 256 KiB, so that this asks for no more than a slow telephone line.
		ReadTimeout: 10 * time.Second,
		// From the end of the headers: the body, 10 s at the service, and a slow reader of the answer.
		WriteTimeout: writeTimeout,
		// Leaders come back every few seconds and keep their connection; whoever does not come back in a minute opens a new one.
		IdleTimeout: 60 * time.Second,
		// Room for a path and a query of 8 KiB and as much again for credentials, where Go's default is 1 MiB for each connection.
		MaxHeaderBytes: 16 << 10,
	}
	LimitConnections(server, mostConnections())
	return server
}

// writeTimeout is how long a reply may take, from the end of the request's headers.
const writeTimeout = 30 * time.Second
