package client

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// ReplyError is a reply that is neither an answer nor a problem of Regent's: of a proxy, of a platform's front end, or of a server that is
// something else.
type ReplyError struct {
	Call        string
	Status      int
	ContentType string
	Start       string        // of the body
	RetryAfter  time.Duration // as the header of that name has it, in whole seconds; zero if it does not

	code leadership.Code
}

// maxStart is how many bytes of a strange reply an error shows.
const maxStart = 256

func newReplyError(k call, response *http.Response, body []byte) error {
	retryAfter, _ := seconds(response.Header, "Retry-After")
	return &ReplyError{
		Call:        k.name,
		Status:      response.StatusCode,
		ContentType: contentType(response),
		Start:       string(body[:min(len(body), maxStart)]),
		RetryAfter:  retryAfter,
		code:        strangeCode(k, response.StatusCode),
	}
}

// seconds reads a header that is a number of seconds.
func seconds(h http.Header, name string) (d time.Duration, ok bool) {
	n, err := strconv.ParseUint(h.Get(name), 10, 31)
	return time.Duration(n) * time.Second, err == nil
}

// strangeCode says what a status means from somebody who is not Regent. What stands in front of a server refuses before it forwards; but of
// an error of its own (5xx), and of a success, nobody can say whether the server had been asked. A 404 is not one of Regent's: it
// says nothing of an election.
func strangeCode(k call, status int) leadership.Code {
	switch {
	case status == http.StatusUnauthorized:
		return wire.Unauthenticated
	case status == http.StatusForbidden:
		return wire.PermissionDenied
	case status == http.StatusRequestTimeout:
		return lostCode(k.mutates)
	case status == http.StatusTooManyRequests:
		return wire.RateLimited
	case status >= 500, status < 300:
		return lostCode(k.mutates)
	}
	return ""
}

// Error shows the status and how the body begins.
func (e *ReplyError) Error() string {
	text := fmt.Sprintf("client: %s: HTTP status %d with %q, which is no reply of Regent: %q", e.Call, e.Status, e.ContentType, e.Start)
	if e.code != "" {
		text += " (" + string(e.code) + ")"
	}
	return text
}

// Unwrap is the code, if the status alone has a meaning.
func (e *ReplyError) Unwrap() error {
	if e.code == "" {
		return nil
	}
	return e.code
}
