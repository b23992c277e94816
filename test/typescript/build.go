// Package typescript builds the TypeScript package, with its tests and its driver of test/clients,
// and tests it. The compiler comes from npm by the package's lock file, once, into
// .build/typescript: nothing is written below the sources.
package typescript

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/emulators/need"
)

// Folders below the top of the project.
const (
	sources = "leadership/client/typescript"
	drivers = "test/clients/drivers/typescript"
	built   = ".build/typescript"
)

// types is the file of src that is generated from httpapi/openapi.yaml.
const types = "openapi.ts"

// top returns the project's folder.
func top() string {
	_, file, _, _ := runtime.Caller(0) // with -trimpath it is not an absolute path
	if filepath.IsAbs(file) {
		return filepath.Join(filepath.Dir(file), "..", "..")
	}
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, sources)); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return "."
}

// Build compiles the package, and returns the folder of the compiled files: the package is in src,
// its tests are in test, and the driver is driver/driver.js. It skips the test where there is no
// Node.js or npm cannot get the compiler, and fails it if REGENT_REQUIRE_EMULATORS is 1.
func Build(t testing.TB) string {
	t.Helper()
	need.Programs(t, "node", "npm")
	dir := filepath.Join(top(), built)
	unlock, err := lock(dir)
	require.NoError(t, err)
	defer unlock()
	if err := install(dir); err != nil {
		need.Lacks(t, err.Error())
	}
	changed, err := refresh(dir)
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil && !changed {
		return filepath.Join(dir, "out")
	}
	for _, args := range [][]string{
		{"node_modules/openapi-typescript/bin/cli.js", "openapi.yaml", "--output", filepath.Join("src", types)},
		{"node_modules/typescript/bin/tsc", "-p", "tsconfig.json"}, // the driver uses the package as shipped
		{"node_modules/typescript/bin/tsc", "-p", "tsconfig.test.json"},
	} {
		tool := exec.Command("node", args...)
		tool.Dir = dir
		if out, err := tool.CombinedOutput(); err != nil {
			os.RemoveAll(filepath.Join(dir, "out"))
			t.Fatalf("node %q: %v\n%s", args, err, out)
		}
	}
	return filepath.Join(dir, "out")
}

// lock keeps other processes from building in the folder until unlock is called.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for errors.Is(err, syscall.EINTR) || err == nil {
		if err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err == nil {
			return func() { file.Close() }, nil
		}
	}
	file.Close()
	return nil, err
}

// install makes npm install the packages of the lock file.
func install(dir string) error {
	changed, err := mirror(filepath.Join(top(), sources), dir, "package.json", "package-lock.json")
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json")); err == nil && !changed {
		return nil
	}
	npm := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		os.Remove(filepath.Join(dir, "package.json")) // so that the next run tries again
		return fmt.Errorf("npm cannot get the compiler: %w: %s", err, out)
	}
	return nil
}

// refresh copies the sources, and reports whether any has changed.
func refresh(dir string) (changed bool, err error) {
	changed, err = mirror(filepath.Join(top(), sources), dir, "tsconfig.json", "tsconfig.test.json", "README.md")
	if err == nil {
		var some bool
		some, err = mirror(filepath.Join(top(), "httpapi"), dir, "openapi.yaml")
		changed = changed || some
	}
	for from, to := range map[string]string{sources + "/src": "src", sources + "/test": "test", drivers: "driver"} {
		if err == nil {
			var some bool
			some, err = mirrorAll(filepath.Join(top(), from), filepath.Join(dir, to))
			changed = changed || some
		}
	}
	if changed {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, "out")), os.RemoveAll(filepath.Join(dir, "dist")))
	}
	return changed, err
}

// mirrorAll copies the TypeScript files of a folder, and removes those that no longer exist.
func mirrorAll(from, to string) (changed bool, err error) {
	there, err := filepath.Glob(filepath.Join(from, "*.ts"))
	if err != nil {
		return false, err
	}
	names := map[string]bool{}
	for _, path := range there {
		names[filepath.Base(path)] = filepath.Base(path) != types
	}
	old, err := filepath.Glob(filepath.Join(to, "*.ts"))
	for _, path := range old {
		if name := filepath.Base(path); !names[name] && name != types {
			changed = true
			err = errors.Join(err, os.Remove(path))
		}
	}
	for name, wanted := range names {
		if wanted {
			some, failed := mirror(from, to, name)
			changed, err = changed || some, errors.Join(err, failed)
		}
	}
	return changed, err
}

// mirror copies the files that differ from those in the target.
func mirror(from, to string, names ...string) (changed bool, err error) {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return false, err
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return changed, err
		}
		if there, err := os.ReadFile(filepath.Join(to, name)); err == nil && bytes.Equal(there, text) {
			continue
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
			return changed, err
		}
		changed = true
	}
	return changed, nil
}
