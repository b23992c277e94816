package outbox_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheFailpointsAreThoseThatTheDocumentationNames(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	hit, named := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		collect(hit, `failpoint\.Hit\("(.*?)"\)`, text)
		if file == "doc.go" {
			collect(named, `(?m)^//\t(outbox:\S+)`, text)
		}
	}
	want, got := slices.Sorted(maps.Keys(hit)), slices.Sorted(maps.Keys(named))
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("named (-hit +named):\n%s", diff)
	}
}

func collect(found map[string]bool, pattern string, text []byte) {
	for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		found[string(m[1])] = true
	}
}
