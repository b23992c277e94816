package wire

import "regent/leadership"

// The paths that name no election.
const (
	PathElections        = "/v1/elections"
	PathBatchRenew       = PathElections + ":batchRenew"
	PathBatchCheckTokens = PathElections + ":batchCheckTokens"
	PathEvents           = "/v1/events"
	PathTick             = "/v1/maintenance:tick"
	PathLive             = "/health/live"
	PathReady            = "/health/ready"
	PathSpec             = "/openapi.yaml"
)

// What follows an election in a path.
const (
	Acquire    = ":acquire"
	Renew      = ":renew"
	Release    = ":release"
	CheckToken = ":checkToken"
	Events     = "/events"
)

// Path is the path of the election or, with one of the suffixes above, of something that belongs to it. The name must be valid: that is
// also what keeps the path from being read in any other way.
func Path(e leadership.Election, suffix string) string {
	return PathElections + "/" + string(e) + suffix
}

// Limits of requests.
const (
	MaxBody      = 16 << 10  // bytes of a request's body
	MaxBatchBody = 256 << 10 // bytes of a batch's: leadership.MaxBatch entries, each as long as it may be, fit in
	MaxURI       = 8 << 10   // bytes of a path with its query
)

// ContentType is that of every document but a problem.
const ContentType = "application/json"

// StreamType is the content type of a stream of events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
const StreamType = "text/event-stream"

// LastEventIDHeader says up to where a stream was read.
const LastEventIDHeader = "Last-Event-ID"

// RequestIDHeader carries a request's id, both ways.
const RequestIDHeader = "X-Request-Id"

// MaxRequestID is how many characters a request's id may have.
const MaxRequestID = 128

// ValidRequestID says whether a caller's id can be used as it is: 1 to MaxRequestID of letters, digits and "._:-", so that it can stand in a
// log line, a header and a history without quoting.
func ValidRequestID(id string) bool {
	if id == "" || len(id) > MaxRequestID {
		return false
	}
	for _, c := range []byte(id) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != ':' && c != '-' {
			return false
		}
	}
	return true
}
