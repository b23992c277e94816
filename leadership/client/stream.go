package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// stream is one connection on which events come. It belongs to one goroutine.
type stream struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	body   io.Closer
	events *events

	// silent ends ctx. It runs only while something is waited for, so that a reader may take its time.
	silent  *time.Timer
	silence time.Duration
}

// lasting is an error that does not mend itself.
type lasting struct{ error }

func (e lasting) Unwrap() error { return e.error }

// open makes a connection. It waits no longer than a stream may be silent.
func (c *Client) open(ctx context.Context, k call) (*stream, error) {
	s := &stream{silence: c.silence}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.silent = time.AfterFunc(s.silence, func() { s.cancel(fmt.Errorf("nothing came for %v", s.silence)) })
	defer s.silent.Stop()
	request, err := c.request(s.ctx, k)
	if err != nil {
		s.cancel(nil)
		return nil, lasting{fmt.Errorf("client: %s: %w", k.name, err)}
	}
	if err := c.authorize(request); err != nil {
		s.cancel(nil)
		return nil, fmt.Errorf("client: %s: %w", k.name, err)
	}
	unbounded := c.http
	unbounded.Timeout = 0
	response, err := unbounded.Do(request)
	if err != nil {
		defer s.cancel(nil)
		return nil, s.lost(err)
	}
	s.body, s.events = response.Body, newEvents(response.Body)
	if response.StatusCode == http.StatusOK && contentType(response) == wire.StreamType {
		return s, nil
	}
	defer s.close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return nil, s.lost(err)
	}
	return nil, refused(response.StatusCode, refusal(k, response, body))
}

// refused tells what may pass from what will not. What is no stream though it is a success comes from a network that wants to be logged
// in to, or from a platform that is starting.
func refused(status int, err error) error {
	if status < 300 || passing(status) {
		return err
	}
	return lasting{err}
}

// passing says whether a status may be another one before long.
func passing(status int) bool {
	return status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooManyRequests
}

// next waits for the next event. Whatever line comes shows that the server is there; a part of one does not.
func (s *stream) next() (message, error) {
	defer s.silent.Stop()
	for {
		s.silent.Reset(s.silence)
		m, ok, err := s.events.read()
		switch {
		case err != nil:
			return message{}, s.lost(err)
		case ok:
			return m, nil
		}
	}
}

// lost is the error of a connection that is no more, or none. The cause says more than that ctx has ended.
func (s *stream) lost(err error) error {
	if cause := context.Cause(s.ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return fmt.Errorf("client: watch: %w: %w", leadership.StoreUnavailable, err)
}

func (s *stream) close() {
	s.silent.Stop()
	s.cancel(nil) // before the body, which would else be read to its end
	s.body.Close()
}
