package mutants

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func TestEveryBugCanBePlanted(t *testing.T) {
	t.Parallel()
	for _, m := range All() {
		source, err := m.apply(root)
		if err == nil {
			_, err = parser.ParseFile(token.NewFileSet(), m.File, source, parser.SkipObjectResolution)
		}
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}

func TestEveryBugIsToldApartAndHasTestsThatAreThere(t *testing.T) {
	t.Parallel()
	names := make(map[string]bool)
	tests := make(map[string][]string) // of each folder
	for _, m := range All() {
		if names[m.Name] || m.Had == "" || len(m.By) == 0 || strings.HasSuffix(m.File, "_test.go") {
			t.Errorf("%q: its name is taken, or something of it is missing, or it is a bug of a test", m.Name)
		}
		names[m.Name] = true
		for _, by := range m.By {
			if tests[by.Dir] == nil {
				tests[by.Dir] = testsIn(t, by.Dir)
			}
			for name := range strings.SplitSeq(by.Names, "|") {
				if !matchesAny(name, tests[by.Dir]) {
					t.Errorf("%q: there is no %s in %s", m.Name, name, by.Dir)
				}
			}
		}
	}
}

func matchesAny(pattern string, names []string) bool {
	r := regexp.MustCompile(Tests{Names: pattern}.pattern())
	return slices.ContainsFunc(names, r.MatchString)
}

// testsIn are the names of a folder's tests and fuzz targets.
func testsIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}
