package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"regent/leadership"
)

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
