package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/client"
	"regent/leadership/wire"
)

// processName is the operation that repeats in each period of a process that leads many elections.
const processName = "renewal of 100 elections that one process leads with the Go SDK, in one call of Regent"

// process counts the calls of the store in a period of a process that leads many elections: from
// the end of one call that renewed them all to the end of the next.
func (s *script) process() error {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: httpapi.New(httpapi.Config{Service: s.inst})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() { server.Close(); <-served }()
	calls := make(chan int)
	c, err := client.New(client.Config{
		Server:    "http://" + listener.Addr().String(),
		HTTP:      &http.Client{Transport: counting{ctx, calls}, Timeout: time.Minute},
		Candidate: client.Candidate{ID: "cy", LeaseDuration: processLease},
		Log:       slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	lost := make(chan error, many)
	grants := make(chan error, 1)
	go func() { grants <- leadMany(ctx, c, lost) }()
	for together := 0; ; {
		select {
		case n := <-calls: // the next call of the process may have to wait until this one is counted
			if together++; n < many {
				together = 0
			}
			asked, _ := s.handle.Take()
			if together == 2 {
				s.done = append(s.done, Operation{processName, asked})
				return nil
			}
		case err := <-grants:
			if err != nil {
				return err
			}
		case err := <-lost:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// processLease is short, so that all leases soon go together, and long for an emulator.
const processLease = 30 * time.Second

// leadMany leads many elections until ctx ends.
func leadMany(ctx context.Context, c *client.Client, lost chan<- error) error {
	for i := range many {
		l, err := c.TryAcquire(ctx, leadership.Election(fmt.Sprintf("process-%03d", i)))
		if err != nil {
			return err
		}
		go func() {
			select {
			case <-l.Context().Done():
				lost <- context.Cause(l.Context())
			case <-ctx.Done():
				// the server is about to go: nothing is released
				over, cancel := context.WithCancel(context.Background())
				cancel()
				_ = l.Resign(over)
			}
		}()
	}
	return nil
}

// counting reports how many leases each call renews, as soon as it is answered.
type counting struct {
	ctx   context.Context
	calls chan<- int
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	n := 0
	switch {
	case strings.HasSuffix(r.URL.Path, wire.PathBatchRenew):
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(body)
		if err != nil {
			return nil, err
		}
		n = bytes.Count(text, []byte(`"fencingToken":`))
	case strings.HasSuffix(r.URL.Path, wire.Renew):
		n = 1
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && n > 0 {
		select {
		case c.calls <- n:
		case <-c.ctx.Done():
			response.Body.Close()
			return nil, errors.New("the counting is over")
		}
	}
	return response, err
}
