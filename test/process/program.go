package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Program is a command that can be built.
type Program struct {
	// Package is its import path, or begins with "./" and is below the folder of the test: it may
	// be in a module of its own.
	Package string
	Flags   string // of go build, separated by spaces
}

// Regent is the program that is tested, and Mortal the same with its failpoints.
var (
	Regent = Program{Package: "regent/cmd/regent"}
	Mortal = Program{Package: "regent/cmd/regent", Flags: "-tags failpoints"}
)

// built has a function for each Program that was built: func() (string, error).
var built sync.Map

// Build returns the path of the program. The first call builds it, if the build cache does not have
// it.
func (p Program) Build() (path string, err error) {
	build, _ := built.LoadOrStore(p, sync.OnceValues(p.build))
	return build.(func() (string, error))()
}

// build has go run print the path of what it would run, which is in the build cache from the second
// time on.
func (p Program) build() (string, error) {
	dir := "."
	if !strings.HasPrefix(p.Package, "./") {
		var err error
		if dir, err = root(); err != nil {
			return "", err
		}
	}
	if err := p.watch(dir); err != nil {
		return "", err
	}
	for {
		out, err := p.tool(dir, "run", "-exec", "echo")
		if err != nil {
			return "", err
		}
		path := strings.TrimSpace(out)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path, err
		}
	}
}

// watch opens what the program is built from, so that no result of a test that runs it is taken
// from the cache after a change. The cache looks only at files of the test's own module.
func (p Program) watch(dir string) error {
	const files = `{{if not .Standard}}{{.Dir}}{{range .EmbedFiles}}{{"\n"}}{{$.Dir}}/{{.}}{{end}}{{end}}`
	out, err := p.tool(dir, "list", "-deps", "-f", files)
	if err != nil {
		return err
	}
	for _, name := range append(strings.Fields(out), filepath.Join(dir, "go.mod")) {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		f.Close()
	}
	return nil
}

// tool runs the go command on the program, and returns its output.
func (p Program) tool(dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), "go", slices.Concat(args, strings.Fields(p.Flags), []string{p.Package})...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("%v: %w\n%s", cmd, err, failed.Stderr)
	}
	return string(out), err
}

// root returns the folder of the module regent, in which the test runs.
func root() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if text, _ := os.ReadFile(filepath.Join(dir, "go.mod")); strings.HasPrefix(string(text), "module regent\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			err = errors.New("the working folder is not below the module regent")
		}
	}
	return "", err
}

// Path is Build for a test: it fails the test on an error.
func (p Program) Path(t testing.TB) string {
	t.Helper()
	path, err := p.Build()
	require.NoError(t, err)
	return path
}

// Command returns a command of the program, in the environment of a program under test.
func (p Program) Command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(p.Path(t), args...)
	cmd.Env = Environ()
	return cmd
}

// Environ returns our environment without variables that change how a program under test behaves,
// and with extra.
func Environ(extra ...string) []string {
	ours := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(entry), "=")
		return strings.HasSuffix(name, "_EMULATOR_HOST") || strings.HasSuffix(name, "_PROXY") ||
			strings.HasPrefix(name, "REGENT_") || strings.HasPrefix(name, "MAKE") || name == "PORT"
	})
	return append(ours, extra...)
}
