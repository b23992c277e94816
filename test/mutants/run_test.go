package mutants_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"regent/test/mutants"
)

// small is a module with something in it to be broken.
var small = map[string]string{
	"go.mod": "module small\n\ngo 1.26\n",
	"sum/sum.go": `package sum

func Of(a, b int) int { return a + b }

func Twice(a int) int { return a + a }
`,
	"sum/sum_test.go": `package sum

import "testing"

func TestOf(t *testing.T) {
	if Of(2, 3) != 5 {
		t.Error("2 + 3 is not 5")
	}
}

func TestThatFails(t *testing.T) { t.Error("always") }

func TestThatHangs(t *testing.T) {
	for Of(2, 3) != 5 {
	}
}
`,
}

func TestOnlyABugThatItsTestsFailForIsCaught(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range small {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plant := func(name, old, now, tests string) mutants.Mutant {
		return mutants.Mutant{Name: name, File: "sum/sum.go", Old: old, New: now, By: []mutants.Tests{{Dir: "sum", Names: tests}}}
	}
	elsewhere := plant("one that needs emulators", "a + b", "a - b", "TestOf")
	elsewhere.Emulators = true
	want := map[string]mutants.Outcome{
		"one that is seen":                     mutants.Caught,
		"one that lets its tests hang":         mutants.Caught,
		"one that is not seen":                 mutants.Survived,
		"one that does not build":              mutants.Broken,
		"one whose text is gone":               mutants.Broken,
		"one whose text stands there twice":    mutants.Broken,
		"one whose tests are gone":             mutants.Broken,
		"one whose tests fail without it, too": mutants.Broken,
		elsewhere.Name:                         mutants.NotTried,
	}
	verdicts, err := mutants.Run(t.Context(), mutants.Config{Root: root, Limit: 3 * time.Second, Mutants: []mutants.Mutant{
		plant("one that is seen", "a + b", "a - b", "TestOf"),
		plant("one that lets its tests hang", "a + b", "a - b", "TestThatHangs"),
		plant("one that is not seen", "a + a", "a - a", "TestOf"),
		plant("one that does not build", "a + b", "a + c", "TestOf"),
		plant("one whose text is gone", "a * b", "a - b", "TestOf"),
		plant("one whose text stands there twice", "return a", "return -a", "TestOf"),
		plant("one whose tests are gone", "a + b", "a - b", "TestNothing"),
		plant("one whose tests fail without it, too", "a + b", "a - b", "TestThatFails"),
		elsewhere,
	}})
	if err != nil || len(verdicts) != len(want) {
		t.Fatalf("%d verdicts, %v", len(verdicts), err)
	}
	for _, v := range verdicts {
		if v.Outcome != want[v.Mutant.Name] {
			t.Errorf("%s is %s (%s), want %s", v.Mutant.Name, v.Outcome, v.Said, want[v.Mutant.Name])
		}
	}
	for name, text := range small {
		if now, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(now) != text {
			t.Errorf("%s was touched: %v", name, err)
		}
	}
}
