package mutants

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Mutant is one planted bug.
type Mutant struct {
	Name string // what is wrong now, in a sentence; no other's
	Had  string // who has had it, as far as it is known; or what it stands for
	File string // of the product, from the root of the module
	Old  string // stands in the file exactly once
	New  string // is put in its place, and then stands there exactly once

	// By are the tests that are to catch it: each of them has to, by itself. The first are the cheapest.
	By []Tests
	// Quick says that it belongs to the quick set: the first of By is tried, and takes a second or two besides the build.
	Quick bool
	// Emulators says that its tests need the emulators.
	Emulators bool
}

// Tests are some tests of one package.
type Tests struct {
	Dir   string // of the package, from the root of the module
	Names string // of the tests, separated by "|"
}

// pattern is what go test is given for its -run.
func (t Tests) pattern() string { return "^(" + t.Names + ")$" }

func (t Tests) String() string { return t.Dir + " " + t.Names }

// All returns every planted bug.
func All() []Mutant {
	return slices.Concat(rules(), service(), stores(), leaders(), waiting(), telling(), cloud())
}

// apply returns the file with the bug in it.
func (m Mutant) apply(root string) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(source, []byte(m.Old)); n != 1 {
		return nil, fmt.Errorf("the text that it changes stands %d times in %s, and not once; the code has moved on", n, m.File)
	}
	source = bytes.Replace(source, []byte(m.Old), []byte(m.New), 1)
	if n := bytes.Count(source, []byte(m.New)); n != 1 {
		return nil, fmt.Errorf("the text that it brings stands %d times in %s, and not once", n, m.File)
	}
	return source, nil
}
