package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/instance"
)

// value is a flag that is refused while the command line is read, with the flag's name, rather than by the server later.
type value[T any] struct {
	to    *T
	text  string
	kind  string // how help calls it
	parse func(string) (T, error)
}

func (v *value[T]) Set(text string) error {
	parsed, err := v.parse(text)
	if err != nil {
		return err
	}
	*v.to, v.text = parsed, text
	return nil
}

func (v *value[T]) String() string { return v.text }
func (v *value[T]) Type() string   { return v.kind }

// parseText refuses what a script gets from a variable that it forgot to set.
func parseText(text string) (string, error) {
	if text == "" {
		return "", errors.New("it is empty; leave the flag out for the default")
	}
	return text, nil
}

// parseTexts reads a list with commas between.
func parseTexts(text string) ([]string, error) {
	parts := strings.Split(text, ",")
	for i, p := range parts {
		if parts[i] = strings.TrimSpace(p); parts[i] == "" {
			return nil, errors.New("a part of the list is empty; write them with one comma between each two, or leave the flag out")
		}
	}
	return parts, nil
}

func parseCandidate(text string) (leadership.CandidateID, error) {
	id := leadership.CandidateID(text)
	return id, id.Validate()
}

func parseToken(text string) (leadership.Token, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > int64(leadership.MaxToken) {
		return 0, fmt.Errorf("a fencing token is an integer from 1 to %d", leadership.MaxToken)
	}
	return leadership.Token(n), nil
}

// parseRevision takes 0 too, which as a place in the history is its beginning.
func parseRevision(text string) (leadership.Revision, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, errors.New("a revision is an integer, 0 or more")
	}
	return leadership.Revision(n), nil
}

func parseCondition(text string) (leadership.Revision, error) {
	n, err := parseRevision(text)
	if err != nil || n == 0 {
		return 0, errors.New("the condition is the revision that status showed, 1 or more")
	}
	return n, nil
}

func parseLease(text string) (time.Duration, error) {
	return parseDuration(text, leadership.MinLeaseDuration, leadership.MaxLeaseDuration)
}

func parseLockDelay(text string) (time.Duration, error) {
	return parseDuration(text, 0, leadership.MaxLockDelay)
}

func parseTimeout(text string) (time.Duration, error) {
	return parseDuration(text, time.Millisecond, time.Hour)
}

func parseDuration(text string, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, errors.New("a duration is a number and a unit, such as 30s or 5m")
	case d < least || d > most:
		return 0, fmt.Errorf("it is from %v to %v", least, most)
	case d%time.Millisecond != 0:
		return 0, errors.New("it is in whole milliseconds")
	}
	return d, nil
}

// parseMetadata checks what the server would check, and returns the text as it was given.
func parseMetadata(text string) ([]byte, error) {
	_, err := leadership.ParseMetadata([]byte(text))
	return []byte(text), err
}

// format is how data is printed.
type format string

const (
	table    format = "table"
	document format = "json"
)

func parseFormat(text string) (format, error) {
	switch f := format(text); f {
	case table, document:
		return f, nil
	}
	return "", errors.New("it is table or json")
}

func parseHistory(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < leadership.MinHistory {
		return 0, fmt.Errorf("it is a duration of %v or more, such as 720h", leadership.MinHistory)
	}
	return d, nil
}

func parseCacheExpiry(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > instance.MaxCacheExpiry {
		return 0, fmt.Errorf("it is a duration above 0s, and %v at most", instance.MaxCacheExpiry)
	}
	return d, nil
}

func parseStreamLimit(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second {
		return 0, errors.New("it is a duration of 1s or more, such as 4m30s")
	}
	return d, nil
}

func parseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, errors.New("it is an integer, 1 or more")
	}
	return n, nil
}
