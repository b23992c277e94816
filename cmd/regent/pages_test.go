package main

import (
	"fmt"
	"strings"
	"testing"

	"regent/leadership"
)

func TestAllPagesAreRead(t *testing.T) {
	t.Parallel()
	env := append(startServer(t, newClock()), "REGENT_CANDIDATE=a", "REGENT_KEY="+testKey(1), "REGENT_OUTPUT=json")
	lines := func(want int, args string) {
		t.Helper()
		if n := strings.Count(regent(t, env, args).want(t, exitDone).out, "\n"); n != want {
			t.Errorf("%s: %d lines, want %d", args, n, want)
		}
	}
	const events = leadership.MaxPageSize + 2 // an acquire and a release each
	for token := range events / 2 {
		regent(t, env, "acquire e").want(t, exitDone)
		regent(t, env, fmt.Sprint("release e --token ", token+1)).want(t, exitDone)
	}
	lines(events, "history e")
	lines(1, fmt.Sprint("history e --after ", events-1))

	regent(t, env, "acquire state").want(t, exitDone)
	for range 3 {
		regentReading(t, strings.Repeat("7\n", leadership.MaxEntries), env, "journal append state --token 1").want(t, exitDone)
	}
	lines(3*leadership.MaxEntries, "journal read state")
	lines(1100, "journal read state --limit 1100")
	r := regentReading(t, strings.Repeat("7\n", leadership.MaxEntries+1), env, "journal append state --token 1").want(t, exitUsage)
	if !strings.Contains(r.err, "from 1 to 500 entries") {
		t.Errorf("%q", r.err)
	}
}
