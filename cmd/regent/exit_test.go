package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"regent/leadership"
	"regent/leadership/wire"
)

func TestEachCodeHasAnExitCode(t *testing.T) {
	t.Parallel()
	want := map[leadership.Code]int{
		leadership.InvalidArgument:  exitUsage,
		leadership.LeaseHeld:        exitHeld,
		leadership.TokenStale:       exitHeld,
		leadership.ReadOnly:         exitHeld,
		leadership.NotReady:         exitHeld,
		leadership.LeaseLost:        exitLost,
		leadership.StoreUnavailable: exitUnreachable,
		leadership.RecordTooNew:     exitUnreachable,
		leadership.OutcomeUnknown:   exitUnreachable,
		wire.Draining:               exitUnreachable,
		wire.RequestTimeout:         exitUnreachable,
	}
	for _, m := range wire.Meanings() {
		code, ok := want[m.Code]
		if !ok {
			code = exitOther
		}
		for _, err := range []error{m.Code, &leadership.Error{Code: m.Code}, fmt.Errorf("list: %w", m.Code)} {
			if got := exitCode(err); got != code {
				t.Errorf("%s as %T: exit code %d, want %d", m.Code, err, got, code)
			}
		}
	}
	for err, code := range map[error]int{
		nil:                              exitDone,
		errors.New("something"):          exitOther,
		usagef("something"):              exitUsage,
		context.DeadlineExceeded:         exitUnreachable,
		usagef("key: %w", net.ErrClosed): exitUsage,
		timedOut{leadership.LeaseHeld}:   exitTimedOut,
	} {
		if got := exitCode(err); got != code {
			t.Errorf("%v: exit code %d, want %d", err, got, code)
		}
	}
}

func TestAnAnswerThatIsNoneIsAnError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		code   int
		says   string
	}{
		"the store is away": {refused(503, leadership.StoreUnavailable), exitUnreachable, "regent: Store unavailable: not now"},
		"maybe it was done": {refused(504, leadership.OutcomeUnknown), exitUnreachable, "not now"},
		"a fault":           {refused(500, wire.Internal), exitOther, "not now"},
		"silence":           {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, exitUnreachable, "50ms"},
		"a page":            {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello</html>") }, exitUnreachable, "hello"},
		"an empty document": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }, exitUnreachable, ""},
		"of another server": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such page", 404) }, exitOther, "no such page"},
	} {
		timeout := " --timeout 1m"
		if name == "silence" {
			timeout = " --timeout 50ms"
		}
		r := regent(t, scripted(t, c.answer), "status e"+timeout).want(t, c.code)
		if r.out != "" || !strings.Contains(r.err, c.says) {
			t.Errorf("%s: stdout %q, stderr %q; want %q", name, r.out, r.err, c.says)
		}
	}
}
