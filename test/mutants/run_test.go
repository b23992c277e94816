package mutants_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"regent/test/mutants"
)

// small is a module to plant bugs in.
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

func TestABugIsCaughtOnlyIfItsTestsFailBecauseOfIt(t *testing.T) {
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
	plant := func(name, line, removed, added, tests string) mutants.Mutant {
		line = "func " + line + " { "
		m, err := mutants.Parse(name, "Wrong.\n\nProperty: tokens only rise\nCaught-by: sum "+tests+
			"\n--- a/sum/sum.go\n+++ b/sum/sum.go\n@@ -1,1 +1,1 @@\n-"+line+removed+" }\n+"+line+added+" }\n")
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	const of, twice = "Of(a, b int) int", "Twice(a int) int"
	elsewhere := plant("one that needs emulators", of, "return a + b", "return a - b", "TestOf")
	elsewhere.Emulators = true
	want := map[string]mutants.Outcome{
		"one that is seen":                     mutants.Caught,
		"one that lets its tests hang":         mutants.Caught,
		"one that is not seen":                 mutants.Survived,
		"one that does not build":              mutants.Broken,
		"one whose text is gone":               mutants.Broken,
		"one whose tests are gone":             mutants.Broken,
		"one whose tests fail without it, too": mutants.Broken,
		elsewhere.Name:                         mutants.NotTried,
	}
	verdicts, err := mutants.Run(t.Context(), mutants.Config{Root: root, Limit: 3 * time.Second, Mutants: []mutants.Mutant{
		plant("one that is seen", of, "return a + b", "return a - b", "TestOf"),
		plant("one that lets its tests hang", of, "return a + b", "return a - b", "TestThatHangs"),
		plant("one that is not seen", twice, "return a + a", "return a - a", "TestOf"),
		plant("one that does not build", of, "return a + b", "return a + c", "TestOf"),
		plant("one whose text is gone", of, "return a * b", "return a - b", "TestOf"),
		plant("one whose tests are gone", of, "return a + b", "return a - b", "TestNothing"),
		plant("one whose tests fail without it, too", of, "return a + b", "return a - b", "TestThatFails"),
		elsewhere,
	}})
	if err != nil || len(verdicts) != len(want) {
		t.Fatalf("%d verdicts, %v", len(verdicts), err)
	}
	for _, v := range verdicts {
		if v.Outcome != want[v.Mutant.Name] {
			t.Errorf("%s is %s (%s), want %s", v.Mutant.Name, v.Outcome, v.Why, want[v.Mutant.Name])
		}
		if v.Why == "" {
			t.Errorf("%s is %s, and nothing says why", v.Mutant.Name, v.Outcome)
		}
	}
	for name, text := range small {
		if now, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(now) != text {
			t.Errorf("%s was touched: %v", name, err)
		}
	}
}
