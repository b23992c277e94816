package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write licenses.txt")

const noticesHead = `Regent contains the following modules. Their licenses and notices follow, each with the modules that it is for. The
source of a module is at https://pkg.go.dev/MODULE@VERSION.

`

// legal matches the names of files with licenses and notices.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|copyright)([-._].*)?$`)

// linked is a package in the program.
type linked struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// linkedPackages returns the packages in the program for Linux, which include those of other Unix
// systems.
func linkedPackages(t *testing.T) (all []linked) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Dir,Standard,Module", ".")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=-tags=disable_grpc_modules,grpcnotrace")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p linked
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// notices returns the text of licenses.txt, from the modules on this machine.
func notices(t *testing.T) string {
	t.Helper()
	texts := map[string]map[string]bool{} // of each text the modules
	modules := map[string]string{}        // the folder of each, which must have a license
	add := func(module, dir string) (found bool) {
		for _, file := range legalFiles(t, dir) {
			if texts[file] == nil {
				texts[file] = map[string]bool{}
			}
			texts[file][module] = true
			found = true
		}
		return found
	}
	for _, p := range linkedPackages(t) {
		if p.Standard || p.Module.Main {
			continue
		}
		module := p.Module.Path + " " + p.Module.Version
		modules[module] = p.Module.Dir
		for dir := p.Dir; dir != p.Module.Dir; dir = filepath.Dir(dir) { // code of others inside a module
			add(module, dir)
		}
	}
	for module, dir := range modules {
		if !add(module, dir) {
			t.Errorf("%s has no license", module)
		}
	}
	if !add("the Go standard library", goroot(t)) {
		t.Error("Go has no license")
	}
	var b strings.Builder
	b.WriteString(noticesHead)
	for _, module := range slices.Sorted(maps.Keys(modules)) {
		fmt.Fprintf(&b, "  %s\n", module)
	}
	var parts []string
	for text, of := range texts {
		parts = append(parts, fmt.Sprintf("\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(slices.Sorted(maps.Keys(of)), "\n"), text))
	}
	slices.Sort(parts)
	b.WriteString(strings.Join(parts, ""))
	return b.String()
}

func goroot(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// legalFiles returns the texts of licenses and notices in a folder, with line ends of one kind.
func legalFiles(t *testing.T, dir string) (texts []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.IsDir() || !legal.MatchString(entry.Name()) || filepath.Ext(entry.Name()) == ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		require.NoError(t, err)
		texts = append(texts, strings.Trim(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"))
	}
	return texts
}

func TestLicensesAreThoseOfTheModulesInTheBinary(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the files of a checkout end their lines otherwise on Windows")
	}
	want := notices(t)
	if *update {
		require.NoError(t, os.WriteFile("licenses.txt", []byte(want), 0o644))
		return
	}
	got, err := os.ReadFile("licenses.txt")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("licenses.txt is not of the modules that are linked; run make generate")
	}
}
