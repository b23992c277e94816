package pubsub

import (
	"crypto/rand"
	"fmt"
	"strings"
)

// Limits of Pub/Sub's names.
const (
	minID = 3
	maxID = 255
)

// ParseTopic reads the full name of a topic, projects/P/topics/T, as far as it takes to tell a name from a slip; Pub/Sub knows its rules better.
// The error says what is wrong, in a sentence.
func ParseTopic(name string) (project, topic string, err error) {
	p := strings.Split(name, "/")
	if len(p) != 4 || p[0] != "projects" || p[2] != "topics" || !isProject(p[1]) {
		return "", "", fmt.Errorf("a topic is named projects/P/topics/T, such as projects/my-project/topics/regent, not %s", shown(name))
	}
	if topic = p[3]; !isID(topic) {
		return "", "", fmt.Errorf("a topic's id has %d to %d characters of A-Z, a-z, 0-9 and \"-_.~+%%\", and begins with a letter, not with goog; %s does not",
			minID, maxID, shown(topic))
	}
	return p[1], topic, nil
}

// isProject allows the ids of today and those of old, such as example.com:my-project.
func isProject(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-.:") == "" && isLetter(rune(s[0]))
}

func isID(s string) bool {
	return len(s) >= minID && len(s) <= maxID && isLetter(rune(s[0])) && !strings.HasPrefix(s, "goog") && strings.Map(idRune, s) == s
}

// idRune is what stands for r in an id: itself, or a dash.
func idRune(r rune) rune {
	if isLetter(r) || r >= '0' && r <= '9' || strings.ContainsRune("-_.~+%", r) {
		return r
	}
	return '-'
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// newSubscription is a name that no other call returns.
func (b *Bus) newSubscription() string {
	const longest = 200 // of the part that is for people
	id := "regent-"
	if instance := strings.Map(idRune, b.instance); instance != "" {
		id += instance[:min(len(instance), longest)] + "-"
	}
	return b.project + "/subscriptions/" + id + strings.ToLower(rand.Text()[:16])
}

// shown quotes what a caller gave, cut to what a person can read.
func shown(s string) string {
	const limit = 64
	if len(s) > limit {
		return fmt.Sprintf("%q…", s[:limit])
	}
	return fmt.Sprintf("%q", s)
}
