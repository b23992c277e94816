package typescript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var snippet = regexp.MustCompile("(?s)```ts\n(.*?)```(?:\n\n```text\n(.*?)```)?")

// TestTheTarballAndItsPage installs the package into an empty folder without a network, and
// compiles the programs of its page against it. Those whose output the page shows are run, except
// for the server's address as they stand.
func TestTheTarballAndItsPage(t *testing.T) {
	t.Parallel()
	Build(t)
	dir, server := installed(t), serve(t)
	programs := snippet.FindAllStringSubmatch(string(read(t, filepath.Join(top(), sources, "README.md"))), -1)
	var names []string
	for i, program := range programs {
		name := fmt.Sprintf("program%d.ts", i+1)
		write(t, filepath.Join(dir, name), strings.ReplaceAll(program[1], "http://127.0.0.1:8080", server))
		names = append(names, name)
	}
	compile(t, dir, names)
	ran := 0
	for i, program := range programs {
		if program[2] == "" {
			continue
		}
		ran++
		if diff := cmp.Diff(program[2], run(t, dir, strings.TrimSuffix(names[i], ".ts")+".js")); diff != "" {
			t.Errorf("program %d of the page prints (-page +program)\n%s", i+1, diff)
		}
	}
	if ran < 5 || len(programs) < 7 {
		t.Errorf("%d of %d programs were run", ran, len(programs))
	}
}

// installed returns a folder in which the package was installed from its tarball.
func installed(t *testing.T) string {
	t.Helper()
	dir, made := t.TempDir(), filepath.Join(top(), built)
	out := npm(t, made, "pack", "--json", "--ignore-scripts", "--pack-destination", dir)
	var packs []struct {
		Filename           string
		Size, UnpackedSize int
		Files              []struct{ Path string }
	}
	if err := json.Unmarshal(out, &packs); err != nil || len(packs) != 1 {
		t.Fatalf("npm pack: %v\n%s", err, out)
	}
	pack := packs[0]
	t.Logf("%s: %d bytes, %d unpacked, %d files", pack.Filename, pack.Size, pack.UnpackedSize, len(pack.Files))
	expected := regexp.MustCompile(`^(package\.json|README\.md|dist/[a-z_]+\.(js|d\.ts))$`)
	for _, file := range pack.Files {
		if !expected.MatchString(file.Path) {
			t.Errorf("the tarball has %s", file.Path)
		}
	}
	write(t, filepath.Join(dir, "package.json"), `{"type": "module", "private": true}`)
	npm(t, dir, "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "./"+pack.Filename)
	if entries, err := os.ReadDir(filepath.Join(dir, "node_modules")); err != nil || len(entries) > 2 { // and .package-lock.json
		t.Errorf("%d things were installed: %v", len(entries), err)
	}
	// of Node.js; a program needs none if it is JavaScript
	require.NoError(t, os.Symlink(filepath.Join(made, "node_modules", "@types"), filepath.Join(dir, "node_modules", "@types")))
	return dir
}

func npm(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "npm", args...)
	var problems bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &problems
	cmd.Env = append(os.Environ(), "npm_config_cache="+t.TempDir(), "npm_config_update_notifier=false")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("npm %s: %v\n%s%s", args[0], err, out, problems.Bytes())
	}
	return out
}

func write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

// compile compiles programs as a strict user would, with the types of the package checked, too.
func compile(t *testing.T, dir string, names []string) {
	t.Helper()
	args := append([]string{
		filepath.Join(top(), built, "node_modules", "typescript", "bin", "tsc"),
		"--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext",
		"--lib", "es2022,esnext.disposable", "--types", "node",
	}, names...)
	tsc := exec.CommandContext(t.Context(), "node", args...)
	tsc.Dir = dir
	if out, err := tsc.CombinedOutput(); err != nil {
		t.Fatalf("tsc: %v\n%s", err, out)
	}
}

func run(t *testing.T, dir, name string) string {
	t.Helper()
	var problems bytes.Buffer
	node := exec.CommandContext(t.Context(), "node", name)
	node.Dir, node.Stderr = dir, &problems
	out, err := node.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", name, err, out, problems.Bytes())
	}
	return string(out)
}
