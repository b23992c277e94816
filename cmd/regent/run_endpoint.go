package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
)

// leaderEndpoint tells load balancers and probes whether this process leads.
type leaderEndpoint struct {
	election leadership.Election
	lease    atomic.Pointer[client.Lease] // the last one under which the command ran; nil before the first
	paused   atomic.Bool                  // the command is paused
}

const (
	endpointTimeout     = 5 * time.Second
	endpointConnections = 64
	endpointHeaderBytes = 4 << 10 // net/http adds as much again
)

func parseLeaderEndpoint(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 {
		return "", errors.New("must be an address and a port from 1 to 65535, such as 127.0.0.1:8081, [::1]:8081 or :8081")
	}
	if _, err := netip.ParseAddr(host); host != "" && err != nil {
		return "", errors.New("must have an IP address of this machine, such as 127.0.0.1 or [::1], or none before the colon for all of them")
	}
	return text, nil
}

// openEndpoint serves the endpoint, if the flags ask for it, until close is called.
func (r *runner) openEndpoint() (close func(), err error) {
	if r.leaderEndpoint == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", r.leaderEndpoint)
	if err != nil {
		return nil, exitStatus{exitNotRun, fmt.Errorf("%w; choose another address with --leader-endpoint", err)}
	}
	server := &http.Server{Handler: &r.endpoint, ReadTimeout: endpointTimeout, WriteTimeout: endpointTimeout, MaxHeaderBytes: endpointHeaderBytes, ErrorLog: newServerLog(r.log)}
	httpapi.LimitConnections(server, endpointConnections, func() {})
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			r.log.Error("nothing tells any more whether this process leads", "reason", err)
		}
	}()
	return func() { server.Close() }, nil
}

// ServeHTTP answers with 200 while the lease lasts, by its deadline at this moment.
func (e *leaderEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", wire.ContentType)
	header.Set("Cache-Control", "no-store")
	answer := struct {
		Election    leadership.Election    `json:"election"`
		CandidateID leadership.CandidateID `json:"candidateId,omitzero"`
		Token       leadership.Token       `json:"fencingToken,omitzero"`
		Reason      string                 `json:"reason,omitzero"`
	}{Election: e.election}
	status := http.StatusServiceUnavailable
	switch lease := e.lease.Load(); {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		header.Set("Allow", "GET, HEAD")
		status, answer.Reason = http.StatusMethodNotAllowed, "ask with GET or HEAD"
	case lease == nil:
		answer.Reason = "this process does not lead yet"
	case !lease.Valid():
		answer.Reason = "this process does not lead any more: " + context.Cause(lease.Context()).Error()
	case e.paused.Load():
		answer.Reason = "the command is paused, because the election is read-only"
	default:
		status, answer.CandidateID, answer.Token = http.StatusOK, lease.CandidateID(), lease.Token()
	}
	text, _ := wire.Marshal(answer) // cannot fail: each value has a JSON form
	w.WriteHeader(status)
	w.Write(append(text, '\n'))
}
