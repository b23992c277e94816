package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

// advice is added to a refusal with the code: what the model should do.
var advice = map[leadership.Code]string{
	leadership.LeaseHeld:        "Do not act as leader. Call watch to learn of the next change, or lead with a longer wait; why_not says more.",
	leadership.LeaseLost:        "Stop acting as leader now. To lead again, call lead.",
	leadership.TokenStale:       "Do not act on that token, and refuse what comes with it; who_leads has the present one.",
	leadership.IndexMismatch:    "Read the journal from the index that you know, and decide again what to append.",
	leadership.OutcomeUnknown:   "It may have been done. Make the same call again to find out.",
	leadership.StoreUnavailable: "Nothing was done. Try again in a few seconds; do not act as leader unless leading says true.",
	wire.PermissionDenied:       "Trying again does not help; ask a person who administers Regent for the right.",
	wire.Unauthenticated:        "Trying again does not help; the client needs a valid credential.",
	wire.RateLimited:            "Make fewer calls, and this one again later.",
}

// adviceTo has the advice that depends on the verb of the tool.
var adviceTo = map[wire.Verb]map[leadership.Code]string{
	wire.VerbAssign:        toOrder,
	wire.VerbEvict:         toOrder,
	wire.VerbPause:         toOrder,
	wire.VerbResume:        toOrder,
	wire.VerbApprove:       toOrder,
	wire.VerbPutCheckpoint: {leadership.TokenStale: succeeded, leadership.IndexMismatch: "checkpoint_get shows the one that counts."},
	wire.VerbAppendJournal: {leadership.TokenStale: succeeded},
	wire.VerbBeginEffect:   {leadership.TokenStale: succeeded},
	wire.VerbFinishEffect:  {leadership.TokenStale: succeeded},
	wire.VerbDecide:        {leadership.TokenStale: succeeded},
}

const (
	lookAgain = "This call has ordered nothing. who_leads shows the present fencing token and revision; give the order for those only if you still mean it."
	succeeded = "A later leader has taken over: stop acting as leader now. who_leads shows the present one."
)

var toOrder = map[leadership.Code]string{leadership.TokenStale: lookAgain, leadership.RevisionMismatch: lookAgain}

// refusal returns the error of a tool in the form for a model: a code, the fault, and what to do.
func refusal(v wire.Verb, err error) error {
	code, text := codeOf(err), err.Error()
	var after time.Duration
	if e, ok := errors.AsType[*leadership.Error](err); ok {
		text, after = worded(e), e.RetryAfter
	}
	if text == "" || text == string(code) {
		text = wire.MeaningOf(code).Advice
	}
	text = strings.TrimPrefix(strings.ReplaceAll(text, string(code)+": ", ""), "client: ")
	if in := fmt.Sprintf("in %v", after.Round(time.Millisecond)); after > 0 && !strings.Contains(text, in) {
		text += "; that may change " + in
	}
	text = string(code) + ": " + strings.TrimSuffix(text, ".") + "."
	if a := cmp.Or(adviceTo[v][code], advice[code]); a != "" {
		text += " " + a
	}
	return errors.New(text)
}

// worded returns the detail of an error for a model, which has neither a key nor a tool named
// acquire.
func worded(e *leadership.Error) string {
	switch {
	case e.Code == leadership.LeaseHeld && e.Reason == leadership.ReasonIncarnation && e.Lease != nil:
		return fmt.Sprintf("%q leads election %q already: go on with the handle that lead returned; without it, wait until the lease ends, in %v unless it is renewed",
			e.Lease.LeaderID, e.Lease.Election, e.RetryAfter.Round(time.Millisecond))
	case e.Code == leadership.LeaseLost: // the advice says what to do
		what, _, _ := strings.Cut(e.Detail, "stop acting as its leader")
		what, _, _ = strings.Cut(what, "stop what was begun")
		return strings.TrimRight(what, " :;,")
	}
	return e.Detail
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
