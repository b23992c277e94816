package main

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"regent/leadership"
)

func TestMetadataCannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a":"plain é 世"}`:      `{"a":"plain é 世"}`,
		"{\"a\":\"\u009b2J\"}":   `{"a":"\u009b2J"}`,
		"{\"a\":\"\u202e\"}":     `{"a":"\u202e"}`,
		"{\"a\":\"\U000e0041\"}": `{"a":"\udb40\udc41"}`,
		"{\"a\":\"\x7f\"}":       `{"a":"\u007f"}`,
	} {
		if got := printable(in); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// broken is a standard output that fails.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestAReaderThatHasSeenEnoughEndsACommandQuietlyAndAFullDiskDoesNot(t *testing.T) {
	t.Parallel()
	env := append(startServer(t, newClock()), "REGENT_CANDIDATE=a")
	gone := &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
	for args, code := range map[string]int{
		"list": exitDone, "version": exitDone, "version --output json": exitDone, "completion bash": exitDone,
		"watch --all": exitDone, "watch --all --output json": exitDone, "apply --dry-run -f -": exitDiffers,
	} {
		for _, c := range []struct {
			err  error
			code int
			text string
		}{{gone, code, ""}, {syscall.ENOSPC, exitOther, "no space left on device"}} {
			var stderr strings.Builder
			got := run(t.Context(), strings.Fields(args), system{strings.NewReader("elections: {a: {}}"), broken{c.err}, &stderr, env})
			said := stderr.String()
			if got != c.code || !strings.Contains(said, c.text) || c.text == "" && code == exitDone && said != "" {
				t.Errorf("%s, %v: exit code %d, stderr %q; want %d, %q", args, c.err, got, said, c.code, c.text)
			}
		}
	}
}

func TestABrokenConnectionIsNotAClosedStandardOutput(t *testing.T) {
	t.Parallel()
	if code := exitCode(syscall.EPIPE); code == exitDone {
		t.Error("EPIPE of a connection counts as done")
	}
	_, err := output{broken{syscall.EPIPE}}.Write(nil)
	if code := exitCode(errors.Join(err)); code != exitDone {
		t.Errorf("EPIPE of standard output: exit code %d", code)
	}
	if n, err := (output{io.Discard}).Write([]byte("abc")); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestTheAddressOfALeaderIsOneLineOfItsMetadata(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 256)
	for metadata, want := range map[string]string{
		"":                                    "",
		`{"a":1,"address":"10.0.0.7:80"}`:     "10.0.0.7:80",
		`{"address":"` + long + `"}`:          long,
		`{"address":"` + long + `x"}`:         "",
		`{"address":""}`:                      "",
		`{"address":7}`:                       "",
		`{"address":["10.0.0.7:80"]}`:         "",
		`{"Address":"10.0.0.7:80"}`:           "",
		`{"address":"10.0.0.7\n80"}`:          "",
		`{"address":"a\u0000b"}`:              "",
		`{"inner":{"address":"10.0.0.7:80"}}`: "",
	} {
		got := ""
		for _, row := range leaseRows(leadership.Lease{State: leadership.Held, Metadata: leadership.Metadata(metadata)}) {
			if row[0] == "address" {
				got = row[1]
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", metadata, got, want)
		}
	}
}

func TestWhatBarsACandidateIsTold(t *testing.T) {
	t.Parallel()
	const account = "https://issuer|7"
	for _, c := range []struct {
		candidate     leadership.CandidateID
		principal     string
		order, column string
	}{
		{"web-1", "", "Candidate web-1 is banned for another 1h0m0s (ann: broken).", "web-1"},
		{"web-*", "", "Candidate web-* is banned for another 1h0m0s (ann: broken).", "web-*"},
		{"", account, "Principal https://issuer|7 is banned for another 1h0m0s (ann: broken).", "principal https://issuer|7"},
		{"web-1", account, "Principal https://issuer|7 is banned, as which candidate web-1 called, for another 1h0m0s (ann: broken).", "web-1, principal https://issuer|7"},
	} {
		o := leadership.Override{Kind: leadership.OverrideBan, CandidateID: c.candidate, Principal: c.principal, Actor: "ann", Reason: "broken", Left: time.Hour}
		if got := orderSentence(o); got != c.order {
			t.Errorf("%q, want %q", got, c.order)
		}
		if got := barred(c.candidate, c.principal); got != c.column {
			t.Errorf("%q, want %q", got, c.column)
		}
	}
	until := time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)
	e := leadership.Event{Type: leadership.EventDeposed, PreviousLeaderID: "web-1", Detail: `{"principal":"https://issuer|7","until":"2026-03-01T13:00:00Z"}`}
	if got, want := tells(e), "web-1, principal https://issuer|7, until "+formatTime(until); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	cause := leadership.Cause{Code: leadership.ReasonBanned, Principal: account, Actor: "ann", Because: "broken", Left: time.Hour}
	if got, want := sentence(cause, "web-2"), "Principal https://issuer|7 is banned, and the candidate if it calls as that, for another 1h0m0s (ann: broken)."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
