package client

import (
	"net"
	"net/http"
	"time"
)

const (
	dialTimeout = 5 * time.Second
	// pingAfter and pingTimeout say when an HTTP/2 connection is pinged, and how long it may take
	// to answer. Without them, every retry of a renewal goes into the same dead connection until
	// the lease is lost.
	pingAfter   = 5 * time.Second
	pingTimeout = 5 * time.Second
	// idleConnections is how many connections are kept for the renewals of the leases that one
	// process holds; Go's default is two.
	idleConnections = 64
)

// newTransport returns Go's default transport, except that it notices dead connections within
// seconds, and asks for no compression. If the program has replaced http.DefaultTransport, it
// returns that.
func newTransport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	alive := net.KeepAliveConfig{Enable: true, Idle: pingAfter, Interval: pingTimeout / 2, Count: 2}
	t.DialContext = (&net.Dialer{Timeout: dialTimeout, KeepAliveConfig: alive}).DialContext
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, idleConnections
	t.DisableCompression = true // servers compress nothing
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
	return t
}
