package wire

import (
	"crypto/rand"
	"net/http"
	"strings"

	"regent/leadership"
)

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
	PathKeySet           = "/.well-known/jwks.json"
)

// Suffixes of the path of an election; those of other calls are in their rows.
const (
	Acquire        = ":acquire"
	Renew          = ":renew"
	Events         = "/events"
	AllOverrides   = "/overrides"
	Candidates     = "/candidates"
	Explain        = ":explain"
	Join           = ":join"
	AllMembers     = "/members"
	TreePath       = "/tree"
	CheckpointPath = "/checkpoint"
	JournalPath    = "/journal"
	Append         = ":append"
	SnapshotPath   = "/snapshot"
	EffectsPath    = "/effects"
	ProposalsPath  = "/proposals"
)

// OwnPrefix begins the names of elections that are reserved for Regent's own instances. Callers may
// read them, but not lead them, which would keep the instances from their work.
const OwnPrefix = "regent."

// Path returns the path of the election or, with a suffix, of something that
// belongs to it. The name must be valid: a valid name needs no escaping.
func Path(e leadership.Election, suffix string) string {
	return PathElections + "/" + string(e) + suffix
}

// Limits of requests.
const (
	MaxBody      = 16 << 10 // bytes of a request's body
	MaxBatchBody = 2 << 20  // bytes of a batch: leadership.MaxBatch of the longest entries fit in
	MaxURI       = 8 << 10  // bytes of a path with its query
)

// ContentType is the content type of every document but a problem.
const ContentType = "application/json"

// StreamType is the content type of a stream of events, as HTML defines it
// (https://html.spec.whatwg.org/multipage/server-sent-events.html).
const StreamType = "text/event-stream"

// LastEventIDHeader carries the id of the last message that was read from a stream.
const LastEventIDHeader = "Last-Event-ID"

// RequestIDHeader carries the id of a request, in the request and in its reply.
const RequestIDHeader = "X-Request-Id"

// MaxRequestID is how many characters the id of a request may have.
const MaxRequestID = 128

// ValidRequestID reports whether an id that a caller sent can be used: 1 to MaxRequestID letters,
// digits and "._:-", so that it needs no quoting in a log line, a header or a history.
func ValidRequestID(id string) bool {
	strange := func(c rune) bool {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		return !letter && (c < '0' || c > '9') && !strings.ContainsRune("._:-", c)
	}
	return id != "" && len(id) <= MaxRequestID && !strings.ContainsFunc(id, strange)
}

// RequestID returns the id that the caller of a request sent, if it is valid, or else a new one.
func RequestID(h http.Header) string {
	if ids := h[RequestIDHeader]; len(ids) == 1 && ValidRequestID(ids[0]) {
		return ids[0]
	}
	return rand.Text()
}
