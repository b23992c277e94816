package storagefence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/api/googleapi"

	"regent/leadership"
)

var errOvertaken = errors.New("the object has changed in the meantime")

type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

// received returns an error of Objects as the functions below take it.
func received(err error) error {
	switch reply, refused := errors.AsType[*googleapi.Error](err); {
	case err == nil:
		return nil
	case !refused:
		return &lostError{err}
	case reply.Code == http.StatusForbidden:
		return fmt.Errorf("%w; a write needs storage.objects.get, .create and .delete, and storage.objects.list to see that an object does not exist", err)
	}
	return err
}

// missing reports whether the object does not exist. A missing bucket also has status 404.
func missing(err error) bool {
	reply, ok := errors.AsType[*googleapi.Error](err)
	return ok && reply.Code == http.StatusNotFound && !strings.Contains(reply.Error(), "bucket does not exist")
}

// maybeDone reports whether an upload that ended like this may have been made, or may still be
// made.
func maybeDone(err error) bool {
	if reply, ok := errors.AsType[*googleapi.Error](err); ok {
		return reply.Code == http.StatusRequestTimeout || reply.Code >= 500
	}
	return true
}

// transient reports whether the same request may be answered differently later.
func transient(err error) bool {
	if reply, ok := errors.AsType[*googleapi.Error](err); ok {
		return maybeDone(err) || reply.Code == http.StatusTooManyRequests || reply.Code == http.StatusPreconditionFailed
	}
	_, lost := errors.AsType[*lostError](err)
	return lost || errors.Is(err, errOvertaken)
}

// coded adds the code to a transient error.
func coded(err error, code leadership.Code) error {
	if transient(err) {
		return fmt.Errorf("%w: %w", code, err)
	}
	return err
}

const (
	firstPause = time.Second
	maxPause   = 32 * time.Second
	// maxRetryAfter is the longest Retry-After that is honoured.
	maxRetryAfter = time.Minute
	// contended divides the pause of a write that lost a race.
	contended = 20
)

// retry calls until there is no error, or one that another attempt does not change.
func retry[T any](ctx context.Context, attempts int, call func() (T, error)) (T, error) {
	for p := (backoff{attempts: attempts}); ; {
		result, err := call()
		if err == nil {
			return result, nil
		}
		if err := p.pause(ctx, err); err != nil {
			return result, err
		}
	}
}

type backoff struct {
	attempts int // attempts left
	failures int
}

// pause waits until the next attempt, or returns why there is none.
func (p *backoff) pause(ctx context.Context, err error) error {
	p.attempts--
	if !transient(err) {
		return err
	}
	if p.attempts <= 0 {
		return fmt.Errorf("after %d attempts: %w", p.failures+1, err)
	}
	select {
	case <-time.After(p.after(err)):
		return nil
	case <-ctx.Done():
		return &lostError{fmt.Errorf("%w, after: %w", ctx.Err(), err)}
	}
}

// after returns how long to wait after the error, at random, so that clients that failed together
// do not return together.
func (p *backoff) after(err error) time.Duration {
	d := min(firstPause<<min(p.failures, 10), maxPause)
	p.failures++
	overtaken := errors.Is(err, errOvertaken)
	var retryAfter uint64 // in seconds
	if reply, ok := errors.AsType[*googleapi.Error](err); ok {
		retryAfter, _ = strconv.ParseUint(reply.Header.Get("Retry-After"), 10, 16)
		overtaken = overtaken || reply.Code == http.StatusPreconditionFailed
	}
	if overtaken {
		d /= contended
	}
	return max(d/2+rand.N(d/2), min(time.Duration(retryAfter)*time.Second, maxRetryAfter))
}
