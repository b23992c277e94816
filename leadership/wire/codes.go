package wire

import (
	"net/http"

	"regent/leadership"
)

// The codes that only a transport can have. Those of the protocol are in package leadership.
const (
	Unauthenticated      leadership.Code = "UNAUTHENTICATED"
	PermissionDenied     leadership.Code = "PERMISSION_DENIED"
	MethodNotAllowed     leadership.Code = "METHOD_NOT_ALLOWED"
	NotAcceptable        leadership.Code = "NOT_ACCEPTABLE"
	RequestTimeout       leadership.Code = "REQUEST_TIMEOUT"
	PayloadTooLarge      leadership.Code = "PAYLOAD_TOO_LARGE"
	URITooLong           leadership.Code = "URI_TOO_LONG"
	UnsupportedMediaType leadership.Code = "UNSUPPORTED_MEDIA_TYPE"
	RateLimited          leadership.Code = "RATE_LIMITED"
	Internal             leadership.Code = "INTERNAL"
	Draining             leadership.Code = "DRAINING"
)

// Meaning is what a code is on the wire.
type Meaning struct {
	Code   leadership.Code
	Status int
	Title  string
	// Advice is the detail of an error that has no sentence of its own.
	Advice string
}

// Meanings is the one table of codes. It serves the server, the client, and the test that holds the specification to it.
func Meanings() []Meaning {
	return []Meaning{
		{leadership.InvalidArgument, http.StatusBadRequest, "Invalid argument", "the request is wrong; asking again will not help"},
		{Unauthenticated, http.StatusUnauthorized, "Unauthenticated", "say who you are"},
		{PermissionDenied, http.StatusForbidden, "Permission denied", "you may not do this"},
		{leadership.NotFound, http.StatusNotFound, "Not found", "there is nothing here"},
		{MethodNotAllowed, http.StatusMethodNotAllowed, "Method not allowed", "this path has other methods; see the header Allow"},
		{NotAcceptable, http.StatusNotAcceptable, "Not acceptable", "replies are " + ContentType + ", streams " + StreamType},
		{RequestTimeout, http.StatusRequestTimeout, "Request timeout", "nothing was done, for the request did not come in time; send it again"},
		{leadership.LeaseHeld, http.StatusConflict, "Lease held", "somebody else leads; try again later"},
		{leadership.LeaseLost, http.StatusConflict, "Lease lost", "you do not lead: stop now"},
		{leadership.TokenStale, http.StatusConflict, "Token stale", "the token is not that of the present leader; do not act on it"},
		{leadership.ElectionDeleted, http.StatusConflict, "Election deleted", "an operator brings the election back by configuring it"},
		{leadership.HistoryCompacted, http.StatusGone, "History compacted", "the events asked for are no longer kept; read the election and go on from its revision"},
		{leadership.RevisionMismatch, http.StatusPreconditionFailed, "Revision mismatch", "the election has changed since you looked; read it again and decide again"},
		{PayloadTooLarge, http.StatusRequestEntityTooLarge, "Payload too large", "send less"},
		{URITooLong, http.StatusRequestURITooLong, "URI too long", "send a shorter URI"},
		{UnsupportedMediaType, http.StatusUnsupportedMediaType, "Unsupported media type", "send " + ContentType + ", not encoded"},
		{RateLimited, http.StatusTooManyRequests, "Rate limited", "slow down"},
		{Internal, http.StatusInternalServerError, "Internal error", "the fault is the server's; its log has the cause under this request id"},
		{leadership.RecordCorrupt, http.StatusInternalServerError, "Record corrupt", "the record of the election cannot be trusted, and nothing is granted on it; an operator has to mend it"},
		{leadership.RecordTooNew, http.StatusServiceUnavailable, "Record too new", "nothing was done, for the election needs a newer version of the program; try again, a leader until its own deadline"},
		{leadership.StoreUnavailable, http.StatusServiceUnavailable, "Store unavailable", "nothing was done; try again, a leader until its own deadline"},
		{Draining, http.StatusServiceUnavailable, "Draining", "nothing was done, for this instance is shutting down; try again and reach another"},
		{leadership.OutcomeUnknown, http.StatusGatewayTimeout, "Outcome unknown", "it may have been done; the same call again finds out, a leader's until its own deadline"},
	}
}

// MeaningOf returns what the code means. One that is not in the table means Internal.
func MeaningOf(code leadership.Code) Meaning {
	var internal Meaning
	for _, m := range Meanings() {
		switch m.Code {
		case code:
			return m
		case Internal:
			internal = m
		}
	}
	return internal
}
