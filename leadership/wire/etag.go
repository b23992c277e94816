package wire

import (
	"fmt"
	"strconv"
	"strings"

	"regent/leadership"
)

// ETag is the entity tag of an election at a revision.
func ETag(r leadership.Revision) string { return `"` + strconv.FormatInt(int64(r), 10) + `"` }

// IfMatch is the header that asks for the revision, "" if r asks for nothing.
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
	return 0, &leadership.Error{Code: leadership.InvalidArgument, Field: "If-Match", Detail: fmt.Sprintf(
		`If-Match is one entity tag as a read of the election has it, such as "7", or *; weak tags and lists are not taken: %s`, Quote(strings.Join(values, ", ")))}
}

func revisionOf(tag string) (leadership.Revision, bool) {
	digits, ok := strings.CutPrefix(tag, `"`)
	digits, closed := strings.CutSuffix(digits, `"`)
	n, err := strconv.ParseInt(digits, 10, 64)
	r := leadership.Revision(n)
	return r, ok && closed && err == nil && n > 0 && ETag(r) == tag
}

// NoneMatch says whether an If-None-Match header lets a reply of that revision through: whether none of its tags is the
// revision's. As RFC 9110 has it, the comparison is weak, and a tag that Regent never wrote matches nothing.
func NoneMatch(values []string, r leadership.Revision) bool {
	for tag := range strings.SplitSeq(strings.Join(values, ","), ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" || strings.TrimPrefix(tag, "W/") == ETag(r) {
			return false
		}
	}
	return true
}

// Newest is the greatest revision that an If-None-Match header knows of; 0 if it knows none.
func Newest(values []string) leadership.Revision {
	var newest leadership.Revision
	for tag := range strings.SplitSeq(strings.Join(values, ","), ",") {
		if r, ok := revisionOf(strings.TrimPrefix(strings.TrimSpace(tag), "W/")); ok {
			newest = max(newest, r)
		}
	}
	return newest
}
