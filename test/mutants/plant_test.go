package mutants

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

func all(t *testing.T) []Mutant {
	t.Helper()
	bugs, err := All()
	require.NoError(t, err)
	return bugs
}

func TestEveryPatchApplies(t *testing.T) {
	t.Parallel()
	for _, m := range all(t) {
		source, err := m.apply(root)
		if err == nil {
			_, err = parser.ParseFile(token.NewFileSet(), m.patch.file, source, parser.SkipObjectResolution)
		}
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		if strings.HasSuffix(m.patch.file, "_test.go") {
			t.Errorf("%s: the bug is in a test", m.Name)
		}
	}
}

func TestEveryBugNamesAPackageWithTests(t *testing.T) {
	t.Parallel()
	for _, m := range all(t) {
		for _, by := range m.By {
			if files, err := filepath.Glob(filepath.Join(root, by.Dir, "*_test.go")); err != nil || files == nil {
				t.Errorf("%s: there are no tests in %s: %v", m.Name, by.Dir, err)
			}
		}
	}
}

func TestEveryPropertyHasABug(t *testing.T) {
	t.Parallel()
	broken := map[Property]bool{}
	for _, m := range all(t) {
		broken[m.Property] = true
	}
	for _, p := range Properties() {
		if !broken[p] {
			t.Errorf("no planted bug breaks: %s", p)
		}
	}
}
