package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"regent/httpapi"
	"regent/leadership"
	"regent/leadership/instance"
	"regent/leadership/wire"
	"regent/store/memory"
	"regent/test/process"
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

// refusing starts a server that answers every call with err.
func refusing(t *testing.T, err error) []string {
	t.Helper()
	leases := memory.New(memory.Config{})
	server := httptest.NewServer(httpapi.New(httpapi.Config{Service: failing{newTestInstance(t, instance.Config{Store: leases}), err}}))
	t.Cleanup(server.Close)
	return []string{"REGENT_SERVER=" + server.URL}
}

type failing struct {
	*instance.Instance
	err error
}

func (f failing) Read(context.Context, leadership.ReadRequest) (leadership.Reading, error) {
	return leadership.Reading{}, f.err
}

func TestStoreFailureExitsAsUnreachable(t *testing.T) {
	t.Parallel()
	r := regent(t, refusing(t, fmt.Errorf("store: %w", leadership.StoreUnavailable)), "status e").want(t, exitUnreachable)
	if strings.Count(r.err, "\n") != 1 || !strings.HasPrefix(r.err, "regent: Store unavailable: nothing was done; try again") {
		t.Errorf("%q: want one line with the problem and what to do", r.err)
	}
	regent(t, refusing(t, leadership.OutcomeUnknown), "status e").want(t, exitUnreachable)
	regent(t, refusing(t, errors.New("a secret of the server")), "status e").want(t, exitOther)
}

func TestMissingServerExitsAsUnreachable(t *testing.T) {
	t.Parallel()
	address, err := process.Address()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"status e", "list", "history e", "acquire e --candidate a", "acquire e --candidate a --wait 1ms", "check e --token 1", "watch e", "watch --all"} {
		r := regent(t, nil, args+" --server http://"+address).want(t, exitUnreachable)
		if !strings.Contains(r.err, address) || !strings.Contains(r.err, "regent serve") {
			t.Errorf("%s: %q; want the address and what to do", args, r.err)
		}
	}
}

func TestSilentServerExitsAsUnreachable(t *testing.T) {
	t.Parallel()
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hang.Close)
	r := regent(t, nil, "status e --timeout 50ms --server "+hang.URL).want(t, exitUnreachable)
	if !strings.Contains(r.err, "50ms") {
		t.Errorf("%q: want what it waited", r.err)
	}
}

func TestOtherServerIsAnError(t *testing.T) {
	t.Parallel()
	for _, answer := range []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello</html>") },
		func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") },
		func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such page", http.StatusNotFound) },
	} {
		server := httptest.NewServer(answer)
		r := regent(t, nil, "status e --server "+server.URL)
		server.Close()
		if r.code == exitDone || r.out != "" || r.err == "" {
			t.Errorf("exit code %d, stdout %q, stderr %q; want an error", r.code, r.out, r.err)
		}
	}
}
