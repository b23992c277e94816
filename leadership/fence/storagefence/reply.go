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

// ReplyError is a reply of Cloud Storage that is no success.
type ReplyError struct {
	Status     int
	Message    string        // what Cloud Storage says; the beginning of the body, quoted, if somebody else replied
	RetryAfter time.Duration // as the header of that name has it, in whole seconds; zero if it does not
}

// maxMessage is how many bytes of a reply an error shows that Cloud Storage has not written.
const maxMessage = 256

func newReplyError(response *http.Response) *ReplyError {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxReply)) // what there is of it will do
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

// Error says what was replied and, where that is not plain, what to do.
func (e *ReplyError) Error() string {
	text := fmt.Sprintf("HTTP status %d: %s", e.Status, e.Message)
	switch e.Status {
	case http.StatusUnauthorized:
		text += "; Config.Client has to add credentials"
	case http.StatusForbidden:
		text += "; to write needs storage.objects.get, .create and .delete, and storage.objects.list to be told that an object is not there"
	}
	return text
}

var (
	errTooLarge  = errors.New("the reply is too large")
	errOvertaken = errors.New("the object has changed in the meantime")
)

// lostError is why there is no reply.
type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

// maybeDone says whether an upload that ended so may have been made, or be made yet.
func maybeDone(err error) bool {
	var reply *ReplyError
	if errors.As(err, &reply) {
		return reply.Status == http.StatusRequestTimeout || reply.Status >= 500
	}
	return true
}

// transient says whether the same request may have another answer later.
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

// coded adds the code to an error that is no answer: one that may be another next time.
func coded(err error, code leadership.Code) error {
	if transient(err) {
		return fmt.Errorf("%w: %w", code, err)
	}
	return err
}

const (
	firstPause = time.Second
	maxPause   = 32 * time.Second
	// maxRetryAfter is the longest time for which Cloud Storage is left alone because it says so.
	maxRetryAfter = time.Minute
	// contended is how much shorter a pause is for who was merely too late.
	contended = 20
)

// pace says when to try again, and for how long.
type pace struct {
	attempts int // that are left
	failures int
}

// pause waits until the next attempt, or returns why there is none.
func (p *pace) pause(ctx context.Context, err error) error {
	p.attempts--
	if !transient(err) {
		return err
	}
	if p.attempts <= 0 {
		return fmt.Errorf("after %d attempts: %w", p.failures+1, err)
	}
	timer := time.NewTimer(p.after(err))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &lostError{fmt.Errorf("%w, after: %w", ctx.Err(), err)}
	}
}

// after is how long to wait after the error: by chance, so that those who failed together do not come together.
func (p *pace) after(err error) time.Duration {
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
