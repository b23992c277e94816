package mutants

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Refresh rewrites the patches in a folder so that they apply to the module at root. A patch that
// does not apply is tried with less context, and then on the other files of the product, where the
// lines that it changes must stand exactly once; so one whose context was reworded, or whose code
// was moved, is found again. Names of tests that are gone are left out. It calls tell for each
// patch whose lines it has changed, and its error names those that must be mended by hand.
func Refresh(root, dir string, tell func(string)) error {
	files, err := productFiles(root)
	if err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return err
	}
	var stuck []error
	for _, name := range names {
		told, err := refresh(root, name, files)
		if err != nil {
			stuck = append(stuck, fmt.Errorf("%s: %w", name, err))
		} else if told != "" {
			tell(fmt.Sprintf("%s: %s", name, told))
		}
	}
	return errors.Join(stuck...)
}

// productFiles returns the text of the Go files that bugs may be planted in, by their names from
// root.
func productFiles(root string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "test" || name != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	return files, err
}

// refresh rewrites one patch if need be, and returns how it has changed.
func refresh(root, name string, files map[string]string) (told string, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	m, err := Parse(strings.TrimSuffix(filepath.Base(name), ".patch"), string(text))
	if err != nil {
		return "", err
	}
	found, err := m.patch.locate(files)
	if err != nil {
		return "", err
	}
	now, diff := found.fresh(files[found.file])
	head, _, _ := strings.Cut(string(text), "\n--- ")
	for _, by := range m.By {
		if left := by.left(root); left != by {
			head = strings.Replace(head, by.String(), left.String(), 1)
			told = "without tests that are gone"
		}
	}
	switch {
	case now.file != m.patch.file:
		told = fmt.Sprintf("now in %s, no longer in %s", now.file, m.patch.file)
	case !slices.EqualFunc(now.hunks, m.patch.hunks, slices.Equal):
		told = "other context"
	}
	if fresh := head + "\n" + diff; fresh != string(text) {
		err = os.WriteFile(name, []byte(fresh), 0o644)
	}
	return told, err
}

// left returns the tests without the names that no longer exist.
func (t Tests) left(root string) Tests {
	files, _ := filepath.Glob(filepath.Join(root, t.Dir, "*_test.go"))
	var source []byte
	for _, file := range files {
		text, _ := os.ReadFile(file)
		source = append(source, text...)
	}
	var left []string
	for name := range strings.SplitSeq(t.Names, "|") {
		if bytes.Contains(source, []byte("\nfunc "+name+"(")) {
			left = append(left, name)
		}
	}
	return Tests{Dir: t.Dir, Names: strings.Join(left, "|")}
}

// locate returns the patch with as much of its context, and for the file, that it applies.
func (p patch) locate(files map[string]string) (patch, error) {
	const whole = 1 << 10 // lines of context
	var places []string
	for _, keep := range [][2]int{{whole, whole}, {1, 1}, {1, 0}, {0, 1}, {0, 0}} {
		less := patch{file: p.file}
		for _, h := range p.hunks {
			less.hunks = append(less.hunks, h.core(keep[0], keep[1]))
		}
		if _, err := less.apply(files[p.file]); err == nil {
			return less, nil
		}
		places = nil
		for file, text := range files {
			if _, err := less.apply(text); err == nil {
				places = append(places, file)
			}
		}
		if len(places) == 1 {
			less.file = places[0]
			return less, nil
		}
	}
	slices.Sort(places)
	return patch{}, fmt.Errorf("the lines that it changes are in no file or in several %v", places)
}
