package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// advice is what a model should do after a refusal with the code, beside what its text says.
var advice = map[leadership.Code]string{
	leadership.LeaseHeld:        "Do not act as leader. Call watch to learn of the next change, or lead with a longer wait; why_not says more.",
	leadership.LeaseLost:        "Stop acting as leader now. To lead again, call lead.",
	leadership.TokenStale:       "Do not act on that token, and refuse what comes with it; who_leads has the present one.",
	leadership.IndexMismatch:    "Read the journal from the index that you know, and decide again what to append.",
	leadership.OutcomeUnknown:   "It may have been done. Make the same call again to find out.",
	leadership.StoreUnavailable: "Nothing was done. Try again in a few seconds; do not act as leader unless leading says true.",
	wire.PermissionDenied:       "Trying again does not help; ask a person who administers Regent for the right.",
	wire.Unauthenticated:        "Trying again does not help; the client needs a valid token of its identity.",
	wire.RateLimited:            "Make fewer calls, and this one again later.",
}

// refusal is an error as a model reads it: a code, what is wrong, and what to do.
func refusal(err error) error {
	code, text := codeOf(err), err.Error()
	var after time.Duration
	if e, ok := errors.AsType[*leadership.Error](err); ok {
		text, after = e.Detail, e.RetryAfter
	}
	if text == "" || text == string(code) {
		text = wire.MeaningOf(code).Advice
	}
	text = strings.TrimPrefix(strings.ReplaceAll(text, string(code)+": ", ""), "client: ")
	if after > 0 {
		text += fmt.Sprintf("; that may change in %v", after.Round(time.Millisecond))
	}
	text = string(code) + ": " + strings.TrimSuffix(text, ".") + "."
	if a := advice[code]; a != "" {
		text += " " + a
	}
	return errors.New(text)
}

// codeOf returns the code of an error, and "" for none.
func codeOf(err error) leadership.Code {
	code := wire.Internal
	switch {
	case err == nil:
		return ""
	case errors.As(err, &code):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return leadership.StoreUnavailable
	}
	return code
}

func invalid(field, format string, args ...any) error {
	return &leadership.Error{Code: leadership.InvalidArgument, Field: field, Detail: fmt.Sprintf(format, args...)}
}
