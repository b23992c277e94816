package client

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// ReplyError is a reply that is neither a success nor a problem document of Regent: from a proxy, a
// platform's front end, or another kind of server.
type ReplyError struct {
	Call        string
	Status      int
	ContentType string
	Start       string        // the beginning of the body
	RetryAfter  time.Duration // from the header of that name, in whole seconds; zero if absent

	code leadership.Code
}

// maxStart is how many bytes of such a reply an error shows.
const maxStart = 256

func newReplyError(k call, response *http.Response, body []byte) error {
	retryAfter, _ := seconds(response.Header, "Retry-After")
	return &ReplyError{
		Call:        k.name,
		Status:      response.StatusCode,
		ContentType: contentType(response),
		Start:       string(body[:min(len(body), maxStart)]),
		RetryAfter:  retryAfter,
		code:        foreignCode(k, response.StatusCode),
	}
}

// seconds reads a header that is a number of seconds.
func seconds(h http.Header, name string) (d time.Duration, ok bool) {
	n, err := strconv.ParseUint(h.Get(name), 10, 31)
	return time.Duration(n) * time.Second, err == nil
}

// foreignCode returns the code for a status in a reply that is not Regent's. A front end refuses
// before it forwards; but after one of its own errors (5xx), or a success, the request may have
// been forwarded. A 404 says nothing about an election.
func foreignCode(k call, status int) leadership.Code {
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

// Error shows the status and the beginning of the body.
func (e *ReplyError) Error() string {
	text := fmt.Sprintf("client: %s: HTTP status %d with %q is not a reply of Regent: %q", e.Call, e.Status, e.ContentType, e.Start)
	if strings.Contains(e.Start, "HTTP request to an HTTPS server") || strings.Contains(e.Start, "HTTP request was sent to HTTPS port") {
		text += "; call it with https://"
	}
	if e.code != "" {
		text += " (" + string(e.code) + ")"
	}
	return text
}

// Unwrap returns the code, if the status alone has a meaning.
func (e *ReplyError) Unwrap() error {
	if e.code == "" {
		return nil
	}
	return e.code
}
