package wire

import (
	"net/http"
	"slices"

	"regent/leadership"
)

// The codes of HTTP. The codes of the protocol are in package leadership.
const (
	Unauthenticated      leadership.Code = "UNAUTHENTICATED"
	PermissionDenied     leadership.Code = "PERMISSION_DENIED"
	MethodNotAllowed     leadership.Code = "METHOD_NOT_ALLOWED"
	NotAcceptable        leadership.Code = "NOT_ACCEPTABLE"
	RequestTimeout       leadership.Code = "REQUEST_TIMEOUT"
	PayloadTooLarge                      = leadership.PayloadTooLarge
	URITooLong           leadership.Code = "URI_TOO_LONG"
	UnsupportedMediaType leadership.Code = "UNSUPPORTED_MEDIA_TYPE"
	RateLimited          leadership.Code = "RATE_LIMITED"
	Internal             leadership.Code = "INTERNAL"
	Draining             leadership.Code = "DRAINING"
)

// Meaning is how a code is shown to a client.
type Meaning struct {
	Code   leadership.Code
	Status int
	Title  string
	// Advice is the detail of an error that has none of its own.
	Advice string
}

// Meanings returns the table of codes. The server, the client, the README and the test of the
// OpenAPI specification all use it.
func Meanings() []Meaning {
	return []Meaning{
		{leadership.InvalidArgument, http.StatusBadRequest, "Invalid argument", "the request is wrong; correct it before you send it again"},
		{Unauthenticated, http.StatusUnauthorized, "Unauthenticated", "send a credential that says who calls"},
		{PermissionDenied, http.StatusForbidden, "Permission denied", "the caller has no right to do this; ask an operator for it"},
		{leadership.NotFound, http.StatusNotFound, "Not found", "it does not exist"},
		{MethodNotAllowed, http.StatusMethodNotAllowed, "Method not allowed", "this path has other methods; see the header Allow"},
		{NotAcceptable, http.StatusNotAcceptable, "Not acceptable", "accept " + ContentType + " for replies and " + StreamType + " for streams"},
		{RequestTimeout, http.StatusRequestTimeout, "Request timeout", "the request did not arrive in time and nothing was done; send it again"},
		{leadership.LeaseHeld, http.StatusConflict, "Lease held", "another candidate leads; try again later"},
		{leadership.LeaseLost, http.StatusConflict, "Lease lost", "you do not lead: stop now"},
		{leadership.TokenStale, http.StatusConflict, "Token stale", "the token is not that of the current leader; do not act on it"},
		{leadership.ElectionDeleted, http.StatusConflict, "Election deleted", "an operator brings the election back by configuring it"},
		{leadership.NotEligible, http.StatusConflict, "Not eligible", "the candidate lacks what the policy of the election requires; waiting does not help"},
		{leadership.NotReady, http.StatusConflict, "Not ready", "the leader has not said that it serves, or its successor that it is ready; try again later"},
		{leadership.DepthExceeded, http.StatusConflict, "Depth exceeded", "the election is as deep as its limits allow; its leader does the work itself"},
		{leadership.IndexMismatch, http.StatusConflict, "Index mismatch", "the journal or the checkpoint is further than you know; read it, and go on from there"},
		{leadership.ReadOnly, http.StatusConflict, "Read-only", "too few members of the election's electorate are present: do not write; reads go on"},
		{leadership.LimitExceeded, http.StatusConflict, "Limit exceeded", "there is no room for more; end something first"},
		{leadership.HistoryCompacted, http.StatusGone, "History compacted", "the requested events are no longer kept; read the election and go on from its revision"},
		{leadership.RevisionMismatch, http.StatusPreconditionFailed, "Revision mismatch", "the election has changed since you read it; read it again and decide again"},
		{PayloadTooLarge, http.StatusRequestEntityTooLarge, "Payload too large", "send a smaller body"},
		{URITooLong, http.StatusRequestURITooLong, "URI too long", "send a shorter URI"},
		{UnsupportedMediaType, http.StatusUnsupportedMediaType, "Unsupported media type", "send " + ContentType + " without a content encoding"},
		{RateLimited, http.StatusTooManyRequests, "Rate limited", "send fewer requests, and this one again later"},
		{Internal, http.StatusInternalServerError, "Internal error", "the server failed; its log has the cause under this request id"},
		{leadership.RecordCorrupt, http.StatusInternalServerError, "Record corrupt", "the record of the election cannot be trusted, and nothing is granted on it; an operator must repair it"},
		{leadership.RecordTooNew, http.StatusServiceUnavailable, "Record too new", "this election needs a newer version of the program and nothing was done; try again, a leader until its own deadline"},
		{leadership.StoreUnavailable, http.StatusServiceUnavailable, "Store unavailable", "nothing was done; try again, a leader until its own deadline"},
		{Draining, http.StatusServiceUnavailable, "Draining", "this instance is shutting down and nothing was done; try again, and reach another instance"},
		{leadership.OutcomeUnknown, http.StatusGatewayTimeout, "Outcome unknown", "it may have been done; send the same call again to find out, a leader until its own deadline"},
	}
}

// MeaningOf returns the meaning of the code. A code that is not in the table means Internal.
func MeaningOf(code leadership.Code) Meaning {
	all := Meanings()
	i := slices.IndexFunc(all, func(m Meaning) bool { return m.Code == code })
	if i < 0 {
		return MeaningOf(Internal)
	}
	return all[i]
}
