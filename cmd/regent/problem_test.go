package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"regent/leadership"
	"regent/leadership/wire"
)

// problemOf parses the only line on standard error.
func problemOf(t *testing.T, r result) wire.Problem {
	t.Helper()
	p, err := wire.DecodeProblem([]byte(r.err))
	if err != nil || strings.Count(r.err, "\n") != 1 || r.out != "" {
		t.Fatalf("stdout %q, stderr %q (%v); want one line with a problem on stderr", r.out, r.err, err)
	}
	return p
}

func TestWithJSONAnErrorIsAProblemDocument(t *testing.T) {
	t.Parallel()
	env := append(startServer(t, newClock()), "REGENT_OUTPUT=json")
	regent(t, env, "acquire e --candidate agent-1").want(t, exitDone)
	p := problemOf(t, regent(t, env, "acquire e --candidate agent-2").want(t, exitHeld))
	if p.Code != leadership.LeaseHeld || p.Reason != leadership.ReasonHeld || p.RetryAfterMs != 30000 || p.Lease == nil || p.LeaderID != "agent-1" || p.FencingToken != 1 {
		t.Errorf("%+v; want who leads, with which token, and when to come again", p)
	}
	for _, c := range []struct {
		args   string
		exit   int
		code   leadership.Code
		detail string
	}{
		{"status never-seen", exitOther, leadership.NotFound, "was never seen"},
		{"status A", exitUsage, leadership.InvalidArgument, "a-z, 0-9"},
		{"renew e --candidate a --token 1", exitUsage, leadership.InvalidArgument, "the key is missing"},
		{"status e --server 127.0.0.1:1", exitUsage, leadership.InvalidArgument, "begin with http://"},
		{"status e --server http://127.0.0.1:1", exitUnreachable, leadership.StoreUnavailable, "http://127.0.0.1:1 does not answer"},
	} {
		if p := problemOf(t, regent(t, env, c.args).want(t, c.exit)); p.Code != c.code || p.Status != wire.MeaningOf(c.code).Status || !strings.Contains(p.Detail, c.detail) {
			t.Errorf("%s: %+v; want %s and %q", c.args, p, c.code, c.detail)
		}
	}
	if r := regent(t, env, "status A --output table").want(t, exitUsage); !strings.HasPrefix(r.err, "regent: ") {
		t.Errorf("with --output table: %q", r.err)
	}
}

func TestUnreachableStoreIsReportedInOneLine(t *testing.T) {
	t.Parallel()
	google := &url.Error{Op: "Get", URL: "http://metadata", Err: errors.New("no route\nto host")}
	for _, c := range []struct {
		err  error
		code int
		want string
	}{
		{fmt.Errorf("spanner: %w: %w", leadership.StoreUnavailable, google), exitUnreachable, "the store spanner:d does not answer; check its name, the network and the credentials"},
		{fmt.Errorf("spanner: %w", context.DeadlineExceeded), exitUnreachable, "the store spanner:d does not answer"},
		{fmt.Errorf("spanner: no credentials: %w", google), exitOther, "spanner: no credentials: Get"},
	} {
		err := error(storeError{"spanner:d", c.err})
		cli := newCLI(system{})
		if got := cli.sentence(err); !strings.HasPrefix(got, c.want) || strings.Contains(got, "\n") {
			t.Errorf("%v becomes %q, want %q", c.err, got, c.want)
		}
		if got := exitCode(err); got != c.code {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.code)
		}
	}
}
