package client

import (
	"net"
	"net/http"
	"time"
)

const (
	dialTimeout = 5 * time.Second
	// pingAfter and pingTimeout are for when a connection is asked whether it is still there, and for how long it may think about that. Else a
	// renewal that goes into a dead connection is followed there by each that should replace it, until the lease is lost.
	pingAfter   = 5 * time.Second
	pingTimeout = 5 * time.Second
	// idleConnections is how many are kept for the renewals of the leases that one process holds; Go's own transport keeps two.
	idleConnections = 64
)

// newTransport is Go's, but that it notices a dead connection within seconds. A program that has put something else in the place of Go's gets
// that.
func newTransport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	alive := net.KeepAliveConfig{Enable: true, Idle: pingAfter, Interval: pingTimeout / 2, Count: 2}
	t.DialContext = (&net.Dialer{Timeout: dialTimeout, KeepAliveConfig: alive}).DialContext
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, idleConnections
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
	return t
}
