package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestAWrongKeyIsNotRepeated(t *testing.T) {
	t.Parallel()
	const secret = "almost-a-key"
	for _, r := range []result{
		regent(t, nil, "acquire e --candidate a --key "+secret),
		regent(t, []string{"REGENT_KEY=" + secret}, "acquire e --candidate a"),
		regentReading(t, secret, nil, "acquire e --candidate a --key-file -"),
	} {
		r.want(t, exitUsage)
		if strings.Contains(r.out+r.err, secret) {
			t.Errorf("the key is in the output: %s%s", r.out, r.err)
		}
	}
}

func TestAPasswordInAServersAddressIsNotRepeated(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, address := range []string{"http://me:hunter2@host", "me:hunter2@host", "http://me:hunter2/x@host", "http://me:hunter2%@host"} {
		for _, r := range []result{
			regent(t, nil, "list --server "+address),
			regent(t, nil, "list --output json --server "+address),
			regent(t, []string{"REGENT_SERVER=" + address}, "status e"),
		} {
			if r.want(t, exitUsage); strings.Contains(r.out+r.err, secret) {
				t.Errorf("the password is in the output: %s%s", r.out, r.err)
			}
		}
	}
}

func TestHelpIsForStandardOutputAndHasTheExitCodes(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "--help", "help"} {
		r := regent(t, nil, args).want(t, exitDone)
		for _, want := range []string{"2  the command line", "3  another candidate", "4  the lease is lost", "5  the server", "6  the wait", "7  'regent apply --dry-run'", "8  'regent apply'"} {
			if !strings.Contains(r.out, want) || r.err != "" {
				t.Errorf("regent %s: stderr %q, stdout has no %q:\n%s", args, r.err, want, r.out)
			}
		}
	}
}

func TestHelpDoesNotShowTheEnvironment(t *testing.T) {
	t.Parallel()
	env := []string{"REGENT_KEY=" + testKey(1), "REGENT_CANDIDATE=someone"}
	if r := regent(t, env, "acquire --help").want(t, exitDone); strings.Contains(r.out, testKey(1)) || strings.Contains(r.out, "someone") {
		t.Error(r.out)
	}
}

func TestVersionIsKnown(t *testing.T) {
	t.Parallel()
	if r := regent(t, nil, "version").want(t, exitDone); !regexp.MustCompile(`^regent \S+ (\(\S+\) )?go1\.\S+ \w+/\w+\n$`).MatchString(r.out) {
		t.Errorf("%q", r.out)
	}
	if r := regent(t, nil, "version --output json").want(t, exitDone); !strings.HasPrefix(r.out, `{"version":"`) {
		t.Errorf("%q", r.out)
	}
}
