package wire

import (
	"strconv"
	"strings"

	"regent/leadership"
)

// ETag returns the entity tag of an election at a revision.
func ETag(r leadership.Revision) string { return `"` + strconv.FormatInt(int64(r), 10) + `"` }

// IfMatch returns the value of the header that requires the revision, and "" if r requires none.
func IfMatch(r leadership.Revision) string {
	switch r {
	case 0:
		return ""
	case leadership.AnyRevision:
		return "*"
	}
	return ETag(r)
}

// ParseIfMatch reads the header's values: nothing, "*", or one strong tag with a revision from 1.
func ParseIfMatch(values []string) (leadership.Revision, error) {
	if len(values) == 0 {
		return 0, nil
	}
	value := strings.TrimSpace(values[0])
	if len(values) == 1 && value == "*" {
		return leadership.AnyRevision, nil
	}
	if r, ok := revisionOf(value); ok && len(values) == 1 {
		return r, nil
	}
	return 0, malformed("If-Match",
		`If-Match must be one entity tag from a read of the election, such as "7", or *, and not %s; weak tags and lists are not accepted`,
		Quote(strings.Join(values, ", ")))
}

func revisionOf(tag string) (leadership.Revision, bool) {
	digits, ok := strings.CutPrefix(tag, `"`)
	digits, closed := strings.CutSuffix(digits, `"`)
	n, err := strconv.ParseInt(digits, 10, 64)
	r := leadership.Revision(n)
	return r, ok && closed && err == nil && n > 0 && ETag(r) == tag
}

// NoneMatch reports whether none of the tags of an If-None-Match header is that of the revision, so
// that the reply must be sent in full. The comparison is weak (RFC 9110 §13.1.2), and a tag that
// Regent never wrote matches nothing.
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
