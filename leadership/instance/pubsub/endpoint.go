package pubsub

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"regent/leadership/internal/form"
)

// ParseEndpoint checks the address of an endpoint, HOST:PORT, such as
// europe-west4-pubsub.googleapis.com:443. The error is a sentence that names the mistake.
func ParseEndpoint(address string) error {
	host, port, err := net.SplitHostPort(address)
	n, bad := strconv.ParseUint(port, 10, 16)
	if err != nil || bad != nil || n == 0 || !isHost(host) {
		return fmt.Errorf("an endpoint is HOST:PORT, such as europe-west4-pubsub.googleapis.com:443, not %s", form.Shown(address))
	}
	return nil
}

// isHost reports whether s can be the name or the address of a host.
func isHost(s string) bool {
	if net.ParseIP(s) != nil {
		return true
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" ||
			strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return false
		}
	}
	return true
}

// Limits of Pub/Sub's names.
const (
	minID = 3
	maxID = 255
)

// ParseTopic reads the full name of a topic, projects/P/topics/T. It finds common mistakes, not
// every name that Pub/Sub refuses. The error is a sentence that names the mistake.
func ParseTopic(name string) (project, topic string, err error) {
	p := strings.Split(name, "/")
	if len(p) != 4 || p[0] != "projects" || p[2] != "topics" || !isProject(p[1]) {
		return "", "", fmt.Errorf(
			"a topic is named projects/P/topics/T, such as projects/my-project/topics/regent, not %s", form.Shown(name))
	}
	if topic = p[3]; !isID(topic) {
		return "", "", fmt.Errorf(
			"a topic's id has %d to %d characters of A-Z, a-z, 0-9 and \"-_.~+%%\", and begins with a letter, not with goog; %s does not",
			minID, maxID, form.Shown(topic))
	}
	return p[1], topic, nil
}

// isProject allows today's ids and old ones such as example.com:my-project.
func isProject(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-.:") == "" && isLetter(rune(s[0]))
}

func isID(s string) bool {
	return len(s) >= minID && len(s) <= maxID && isLetter(rune(s[0])) && !strings.HasPrefix(s, "goog") &&
		strings.Map(idRune, s) == s
}

// idRune returns r, or a dash if r must not be in an id.
func idRune(r rune) rune {
	if isLetter(r) || r >= '0' && r <= '9' || strings.ContainsRune("-_.~+%", r) {
		return r
	}
	return '-'
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
