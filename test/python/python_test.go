package python

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/emulators/need"
	"regent/test/machine"
	"regent/test/process"
)

const home = "../../leadership/client/python"

func TestMain(m *testing.M) { machine.Main(m) }

// TestPythonPackage runs each module of the package's tests, with a regent of its own where it
// needs one.
func TestPythonPackage(t *testing.T) {
	t.Parallel()
	need.Programs(t, "python3")
	readAll(t)
	regent := process.Regent.Path(t)
	modules, err := filepath.Glob(filepath.Join(home, "tests", "test_*.py"))
	if err != nil || len(modules) < 5 {
		t.Fatalf("test modules: %q, %v", modules, err)
	}
	t.Run("modules", func(t *testing.T) {
		for _, file := range modules {
			module := strings.TrimSuffix(filepath.Base(file), ".py")
			t.Run(module, func(t *testing.T) {
				t.Parallel()
				cmd := command(t, "python3", "-B", "-m", "unittest", "-q", "tests."+module)
				cmd.Env = append(cmd.Env, "REGENT_BINARY="+regent)
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), "\nOK") {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	})
}

func TestPythonPackageIsTypedStrictly(t *testing.T) {
	t.Parallel()
	need.Programs(t, "mypy")
	readAll(t)
	cmd := command(t, "mypy", "--cache-dir", t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// command runs in the package's folder, without the settings of this process.
func command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = home
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "REGENT_") || strings.HasPrefix(entry, "PYTHON")
	})
	cmd.Env = append(cmd.Env, "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

// readAll reads the package's files, so that the test's result is not cached when one changes.
func readAll(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			_, err = os.ReadFile(path)
		}
		return err
	})
	require.NoError(t, err)
}
