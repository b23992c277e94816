package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddressesOfBothInstances(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"127.0.0.1:9080":                 {"127.0.0.1:9080", "127.0.0.1:9081"},
		"127.0.0.1:9080, 127.0.0.1:7000": {"127.0.0.1:9080", "127.0.0.1:7000"},
		"127.0.0.1:0":                    {"127.0.0.1:0", "127.0.0.1:0"},
	} {
		s, err := parse([]string{"-listen", text})
		if diff := cmp.Diff(want, s.listen); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
	}
}

func TestWrongSettingsAreRefusedWithAdvice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		want string
	}{
		{"-store memory", "choose firestore or spanner"},
		{"-listen 0.0.0.0:8080", "on this machine"},
		{"-listen 127.0.0.1", "give HOST:PORT"},
		{"-listen 127.0.0.1:1,127.0.0.1:1", "two of them"},
		{"-project a/b", "PROJECT=a/b: a project has"},
		{"-- --store=memory:", "choose by STORE=firestore"},
		{"-- --mcp --listen 127.0.0.1:1", "choose by LISTEN=HOST:PORT"},
		{"-- --dev", "--dev is set by make dev itself"},
		{"-bogus", "bogus"},
	} {
		if _, err := parse(strings.Fields(c.args)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.args, err, c.want)
		}
	}
}

func TestMakePassesEveryVariableAsOneArgument(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("make", "-C", "../..", "-n", "dev", "STORE=", "LISTEN=", "PROJECT=a b").Output()
	want := `-store "" -listen "" -project "a b" -- `
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v, want %s in\n%s", err, want, out)
	}
}
