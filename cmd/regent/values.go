package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"regent/leadership"
	"regent/leadership/wire"
)

// value is a flag that is validated while the command line is read, so that the error names the
// flag.
type value[T any] struct {
	to    *T
	text  string
	kind  string // placeholder in the help
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

// addChoice adds a flag that takes one of the words. The help names usual as the default, which is
// *to or stands for its zero value.
func addChoice[T ~string](c *cli, cmd *cobra.Command, to *T, usual T, flag, kind, usage string, words ...T) {
	var all []string
	for _, word := range words {
		all = append(all, string(word))
	}
	last := len(all) - 1
	cmd.Flags().Var(&value[T]{to, string(usual), kind, func(text string) (T, error) {
		if !slices.Contains(all, text) {
			return "", fmt.Errorf("must be %s or %s", strings.Join(all[:last], ", "), all[last])
		}
		return T(text), nil
	}}, flag, usage)
	c.complete(cmd, flag, all...)
}

// parseText refuses an empty text, which a script passes when it forgot to set a variable.
func parseText(text string) (string, error) {
	if text == "" {
		return "", errors.New("must not be empty; omit the flag to use the default")
	}
	return text, nil
}

func parseTexts(text string) ([]string, error) {
	parts := strings.Split(text, ",")
	for i, p := range parts {
		if parts[i] = strings.TrimSpace(p); parts[i] == "" {
			return nil, errors.New("the list has an empty element; separate elements by one comma, or omit the flag")
		}
	}
	return parts, nil
}

// parseElections reads names and patterns of elections.
func parseElections(text string) (all []leadership.Election, err error) {
	parts, err := parseTexts(text)
	for _, part := range parts {
		e := leadership.Election(part)
		if err := e.ValidatePattern(); err != nil {
			return nil, fmt.Errorf("%q is neither a name nor the beginning of names and a *: %w", part, err)
		}
		all = append(all, e)
	}
	return all, err
}

// names parses a name, such as that of a candidate.
func names[T ~string](validate func(T) error) func(string) (T, error) {
	return func(text string) (T, error) { return T(text), validate(T(text)) }
}

var (
	parseElection  = names(leadership.Election.Validate)
	parseCandidate = names(leadership.CandidateID.Validate)
	parsePattern   = names(leadership.CandidateID.ValidatePattern)
	parseCount     = integers(1, math.MaxInt, "must be an integer, 1 or more")
	parseToken     = integers(1, leadership.MaxToken, fmt.Sprintf("a fencing token is an integer from 1 to %d", leadership.MaxToken))
)

// integers parses an integer between the bounds. must is the error for anything else.
func integers[T ~int | ~int64](least, most T, must string) func(string) (T, error) {
	return func(text string) (T, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < int64(least) || n > int64(most) {
			return 0, errors.New(must)
		}
		return T(n), nil
	}
}

func parseVia(text string) (v leadership.Via, err error) {
	rest := text
	if peer, after, found := strings.Cut(text, "/"); found {
		v.Peer, rest = peer, after
		if leadership.CandidateID(peer).Validate() != nil {
			return v, fmt.Errorf("%q is not the name of a peer", peer)
		}
	}
	election, token, found := strings.Cut(rest, ":")
	if !found {
		return v, errors.New("must be ELECTION:TOKEN, or PEER/ELECTION:TOKEN, such as orders.eu:7")
	}
	v.Election = leadership.Election(election)
	if err := v.Election.Validate(); err != nil {
		return v, err
	}
	v.Token, err = parseToken(token)
	return v, err
}

func within(b leadership.Bounds) func(string) (time.Duration, error) { return between(b.Min, b.Max) }

// between parses a duration with those bounds.
func between(least, most time.Duration) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		switch {
		case err != nil:
			return 0, errors.New("a duration is a number and a unit, such as 30s or 5m")
		case d < least || d > most:
			return 0, fmt.Errorf("must be from %v to %v", least, most)
		case d%time.Millisecond != 0:
			return 0, errors.New("must be in whole milliseconds")
		}
		return d, nil
	}
}

// parseMaxLease returns 0 for "none".
func parseMaxLease(text string) (time.Duration, error) {
	if text == "none" {
		return 0, nil
	}
	d, err := within(leadership.MaxLeaseBounds)(text)
	if err != nil {
		return 0, fmt.Errorf("%w; or none, for no limit of its own", err)
	}
	return d, nil
}

// parseRetireAfter also takes 0, for never.
func parseRetireAfter(text string) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil && d == 0 {
		return 0, nil
	}
	return within(leadership.RetireBounds)(text)
}

func parseOverride(text string) (leadership.OverrideID, error) {
	id, err := parseText(text)
	return leadership.OverrideID(id), err
}

// parsePolicy parses the member policy of a configuration, in the form of the API. The result has
// nothing else.
func parsePolicy(text string) (leadership.Config, error) {
	var body wire.ConfigureRequest
	if err := wire.Decode([]byte(`{"policy":`+text+`}`), &body); err != nil {
		return leadership.Config{}, fmt.Errorf("must be a JSON object as the API takes it, such as {\"maxTerm\":\"8h\"}, or {} for none: %w", err)
	}
	return body.Leadership()
}

// parseMetadata validates metadata as the server does, and returns the text unchanged.
func parseMetadata(text string) ([]byte, error) {
	_, err := leadership.ParseMetadata([]byte(text))
	return []byte(text), err
}

// durations parses a duration between the bounds, in any unit. must is the error for anything else.
func durations(least, most time.Duration, must string) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil || d < least || d > most {
			return 0, errors.New(must)
		}
		return d, nil
	}
}
