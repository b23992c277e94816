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

// stream is one connection with events. It is used by one goroutine.
type stream struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	body   io.Closer
	events *events

	// silent ends ctx. It runs only while next waits, so that a slow reader does not end the
	// stream.
	silent  *time.Timer
	silence time.Duration
}

// permanentError is an error that a new connection will not fix.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// open connects. It waits no longer than a stream may be silent.
func (c *Client) open(ctx context.Context, k call) (*stream, error) {
	s := &stream{silence: c.silence}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.silent = time.AfterFunc(s.silence, func() { s.cancel(fmt.Errorf("nothing arrived for %v", s.silence)) })
	defer s.silent.Stop()
	request, err := c.request(s.ctx, k)
	if err != nil {
		s.cancel(nil)
		return nil, permanentError{fmt.Errorf("client: %s: %w", k.name, err)}
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

// refused distinguishes permanent from transient refusals. A success that is not a stream is
// transient: it comes from a network with a login page, or from a platform that is starting.
func refused(status int, err error) error {
	if status < 300 || transientStatus(status) {
		return err
	}
	return permanentError{err}
}

// transientStatus reports whether a repeated request may soon get another status.
func transientStatus(status int) bool {
	return status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooManyRequests
}

// next waits for the next event. Every complete line shows that the server is alive; a partial line
// does not.
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

// lost returns the error of a broken connection, or of one that could not be made. The cause says
// more than that ctx has ended.
func (s *stream) lost(err error) error {
	if cause := context.Cause(s.ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return fmt.Errorf("client: watch: %w: %w", leadership.StoreUnavailable, err)
}

func (s *stream) close() {
	s.silent.Stop()
	s.cancel(nil) // before closing the body, which would otherwise be drained
	s.body.Close()
}
