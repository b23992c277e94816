package failpoint_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

const survived = "1\n2\n3\n4\n5\ndeferred\n"

func TestProcessDiesAtTheHitThatWasAskedFor(t *testing.T) {
	t.Parallel()
	program := build(t, "-tags=failpoints")
	for setting, want := range map[string]string{
		"some:point:1":    "",
		"some:point:3":    "1\n2\n",
		"another:point:5": "1\n2\n3\n4\n",
	} {
		if out, killed := run(t, program, setting); out != want || !killed {
			t.Errorf("%s: it said %q, killed: %v; want %q and killed", setting, out, killed, want)
		}
	}
	for _, setting := range []string{"some:point:6", "no:such:1", ""} {
		if out, killed := run(t, program, setting); out != survived || killed {
			t.Errorf("%s: it said %q, killed: %v; want it to live", setting, out, killed)
		}
	}
}

func TestNormalBuildHasNoPoints(t *testing.T) {
	t.Parallel()
	program := build(t)
	if out, killed := run(t, program, "some:point:1"); out != survived || killed {
		t.Errorf("it said %q, killed: %v; want it to live", out, killed)
	}
	symbols := command(t, "go", "tool", "nm", program)
	assert.NotContains(t, symbols, "internal/failpoint", "something of the package is in the program")
}

// build builds testdata/hits.
func build(t *testing.T, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "hits")
	command(t, "go", append(append([]string{"build", "-o", program}, flags...), "./testdata/hits")...)
	return program
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// run returns what the program said, and whether it ended by SIGKILL. Without a setting the
// variable is not set.
func run(t *testing.T, program, setting string) (out string, killed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = os.Environ()
	if setting != "" {
		cmd.Env = append(cmd.Env, "REGENT_FAILPOINT="+setting)
	}
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return stdout.String(), exit != nil && exit.String() == "signal: killed"
}
