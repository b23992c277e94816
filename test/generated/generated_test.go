package generated

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/oapi-codegen/runtime" // of the generated client
	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/leadership/instance"
	"regent/store/memory"
)

func TestAGeneratedClientAcquiresALease(t *testing.T) {
	t.Parallel()
	dir := clientModule(t)
	inst, err := instance.New(instance.Config{Store: memory.New(memory.Config{}), Alone: true})
	require.NoError(t, err)
	server := httptest.NewServer(httpapi.New(httpapi.Config{Service: inst}))
	t.Cleanup(server.Close)
	got := execute(t, dir, "go", "run", "-mod=mod", ".", server.URL)
	if want := "ann leads with token 1\nbob is refused: LEASE_HELD true\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// clientModule returns the folder of a module with a generated client and the program that uses it.
// It has the requirements of this one.
func clientModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "api"), 0o700))
	execute(t, ".", "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "api", "-o", filepath.Join(dir, "api", "api.go"), "../../httpapi/openapi.yaml")
	mod := read(t, "go.mod")
	mod = strings.Replace(mod, "module regent/test/generated", "module generated", 1)
	above, err := filepath.Abs("../..")
	require.NoError(t, err)
	write(t, filepath.Join(dir, "go.mod"), strings.Replace(mod, "=> ../..", "=> "+above, 1))
	write(t, filepath.Join(dir, "go.sum"), read(t, "go.sum"))
	write(t, filepath.Join(dir, "main.go"), read(t, "testdata/main.go"))
	return dir
}

// execute runs a command in the folder and returns what it prints.
func execute(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	var stderr strings.Builder
	cmd.Dir, cmd.Stderr = dir, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}
