package storagefence

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"regent/leadership"
)

// ReplyError is a reply of Cloud Storage that is not a success.
type ReplyError struct {
	Status int
	// Cloud Storage's message; for other repliers the beginning of the body, quoted
	Message    string
	RetryAfter time.Duration // from the header of that name, in whole seconds; zero if absent
}

// maxMessage is how many bytes an error shows of a reply that is not from Cloud Storage.
const maxMessage = 256

func newReplyError(response *http.Response) *ReplyError {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxReply)) // a partial body is enough
	var reply struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &reply)
	seconds, _ := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16)
	return &ReplyError{
		Status:     response.StatusCode,
		Message:    cmp.Or(reply.Error.Message, strconv.Quote(string(body[:min(len(body), maxMessage)]))),
		RetryAfter: time.Duration(seconds) * time.Second,
	}
}

// Error returns the reply and, where it is not obvious, what to do.
func (e *ReplyError) Error() string {
	text := fmt.Sprintf("HTTP status %d: %s", e.Status, e.Message)
	switch e.Status {
	case http.StatusUnauthorized:
		text += "; Config.Client must add credentials"
	case http.StatusForbidden:
		text += "; a write needs storage.objects.get, .create and .delete, and storage.objects.list to see that an object does not exist"
	}
	return text
}

var (
	errTooLarge  = errors.New("the reply is too large")
	errOvertaken = errors.New("the object has changed in the meantime")
)

type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

// maybeDone reports whether an upload that ended like this may have been made, or may still be
// made.
func maybeDone(err error) bool {
	var reply *ReplyError
	if errors.As(err, &reply) {
		return reply.Status == http.StatusRequestTimeout || reply.Status >= 500
	}
	return true
}

// transient reports whether the same request may be answered differently later.
func transient(err error) bool {
	var reply *ReplyError
	var lost *lostError
	switch {
	case errors.As(err, &reply):
		return maybeDone(err) || reply.Status == http.StatusTooManyRequests || reply.Status == http.StatusPreconditionFailed
	default:
		return errors.As(err, &lost) || errors.Is(err, errOvertaken)
	}
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
	var reply *ReplyError
	if !errors.As(err, &reply) {
		reply = &ReplyError{}
	}
	if errors.Is(err, errOvertaken) || reply.Status == http.StatusPreconditionFailed {
		d /= contended
	}
	return max(d/2+rand.N(d/2), min(reply.RetryAfter, maxRetryAfter))
}
