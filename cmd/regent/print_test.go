package main

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

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
