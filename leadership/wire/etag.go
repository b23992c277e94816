package wire

import (
	"net/http"
	"strconv"
	"strings"

	"regent/leadership"
)

// ETag returns the entity tag of an election at a revision.
func ETag(r leadership.Revision) string { return `"` + strconv.FormatInt(int64(r), 10) + `"` }

// Condition returns the header with the revision that an operator has decided on.
func Condition(r leadership.Revision) map[string]string {
	if r == leadership.NeverSeen {
		return map[string]string{"If-None-Match": "*"}
	}
	return map[string]string{"If-Match": ETag(r)}
}

// ParseCondition reads the condition of a configuration: what ParseIfMatch reads, or If-None-Match
// with "*" for an election that was never seen.
func ParseCondition(h http.Header) (leadership.Revision, error) {
	none := h.Values("If-None-Match")
	switch {
	case len(none) == 0:
		return ParseIfMatch(h.Values("If-Match"))
	case len(h.Values("If-Match")) > 0:
		return 0, malformed("If-None-Match", "send If-Match, for an election that exists, or If-None-Match, for a new one, and not both")
	case len(none) > 1 || strings.TrimSpace(none[0]) != "*":
		return 0, malformed("If-None-Match", "If-None-Match of a configuration must be *, for an election that was never seen, and not %s; to expect a revision, send it in If-Match",
			Quote(strings.Join(none, ", ")))
	}
	return leadership.NeverSeen, nil
}

// ParseIfMatch reads the header's values: one strong tag with a revision from 1. The header is
// required, so that a late copy of the call finds another revision and cannot undo later changes.
func ParseIfMatch(values []string) (leadership.Revision, error) {
	if len(values) == 0 {
		return 0, malformed("If-Match", `If-Match is missing: send the ETag of a read of the election, or of checkToken, such as "7", so that this call is about the election as you have seen it`)
	}
	if r, ok := revisionOf(strings.TrimSpace(values[0])); ok && len(values) == 1 {
		return r, nil
	}
	return 0, malformed("If-Match", `If-Match must be one entity tag from a read of the election, or from checkToken, such as "7", and not %s; *, weak tags and lists are not accepted`,
		Quote(strings.Join(values, ", ")))
}

func revisionOf(tag string) (leadership.Revision, bool) {
	digits, ok := strings.CutPrefix(tag, `"`)
	digits, closed := strings.CutSuffix(digits, `"`)
	n, err := strconv.ParseInt(digits, 10, 64)
	r := leadership.Revision(n)
	return r, ok && closed && err == nil && n > 0 && ETag(r) == tag
}

// NoneMatch reports whether no tag of an If-None-Match header matches the revision, so that the
// reply must be sent in full. The comparison is weak (RFC 9110 §13.1.2), and a tag that Regent
// never wrote matches nothing.
func NoneMatch(values []string, r leadership.Revision) bool {
	if len(values) == 0 {
		return true
	}
	for tag := range strings.SplitSeq(strings.Join(values, ","), ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" || strings.TrimPrefix(tag, "W/") == ETag(r) {
			return false
		}
	}
	return true
}

// Newest returns the greatest revision in an If-None-Match header; 0 if there is none.
func Newest(values []string) leadership.Revision {
	var newest leadership.Revision
	for tag := range strings.SplitSeq(strings.Join(values, ","), ",") {
		if r, ok := revisionOf(strings.TrimPrefix(strings.TrimSpace(tag), "W/")); ok {
			newest = max(newest, r)
		}
	}
	return newest
}
