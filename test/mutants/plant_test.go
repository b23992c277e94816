package mutants

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func all(t *testing.T) []Mutant {
	t.Helper()
	bugs, err := All()
	if err != nil {
		t.Fatal(err)
	}
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

func TestPatchesThatArePlantedNowhereOrTwiceAreRefused(t *testing.T) {
	t.Parallel()
	const head = "Wrong.\n\nProperty: tokens only rise\nCaught-by: sum TestOf\n"
	for name, diff := range map[string]string{
		"nothing removed or added": "--- a/a.go\n+++ b/a.go\n@@ -1,1 +1,1 @@\n a\n",
		"two files":                "--- a/a.go\n+++ b/b.go\n@@ -1,1 +1,1 @@\n-a\n+b\n",
		"no hunk":                  "--- a/a.go\n+++ b/a.go\n-a\n+b\n",
		"no diff":                  "",
	} {
		if _, err := Parse(name, head+diff); err == nil {
			t.Errorf("%s: is accepted", name)
		}
	}
	m, err := Parse("replace", head+"--- a/a.go\n+++ b/a.go\n@@ -1,1 +1,1 @@\n-a\n+b\n")
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{"x\na\ny\n": "x\nb\ny\n", "x\n": "", "a\na\n": "", "a\nb\n": ""} {
		got, err := m.patch.apply(source)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q becomes %q, %v; want %q", source, got, err, want)
		}
	}
}

func TestRefreshFollowsCodeThatMovedAndNamesWhatIsGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const head = "Wrong.\n\nProperty: tokens only rise\nCaught-by: sum TestOf\n"
	write("old.go", "package p\n\n// Other words.\nfunc f() int {\n\treturn 1\n}\n")
	write("new/moved.go", "package new\n\nfunc g() int {\n\tn := 2\n\treturn n\n}\n")
	write("patches/reworded.patch", head+"--- a/old.go\n+++ b/old.go\n@@ -9,2 +9,2 @@\n // Words.\n-func f() int {\n+func f() int64 {\n")
	write("patches/moved.patch", head+"--- a/old.go\n+++ b/old.go\n@@ -3,2 +3,2 @@\n func h() int {\n-\tn := 2\n+\tn := 3\n")
	write("sum/sum_test.go", "package sum\n\nfunc TestOf(t *testing.T) {}\n")
	write("patches/untested.patch", strings.Replace(head, "TestOf", "TestGone|TestOf|TestGoneToo", 1)+"--- a/old.go\n+++ b/old.go\n@@ @@\n-\treturn 1\n+\treturn 2\n")
	write("patches/gone.patch", head+"--- a/old.go\n+++ b/old.go\n@@ -3,2 +3,2 @@\n-\tm := 2\n+\tm := 3\n")
	var told []string
	err := Refresh(dir, filepath.Join(dir, "patches"), func(text string) { told = append(told, text) })
	if err == nil || !strings.Contains(err.Error(), "gone.patch") || strings.Contains(err.Error(), "moved.patch") {
		t.Errorf("error %v; want one about gone.patch alone", err)
	}
	if len(told) != 3 {
		t.Errorf("it tells %q", told)
	}
	for name, want := range map[string]string{
		"reworded": "--- a/old.go\n+++ b/old.go\n@@ @@\n // Other words.\n-func f() int {\n+func f() int64 {\n \treturn 1\n",
		"untested": "--- a/old.go\n+++ b/old.go\n@@ @@\n func f() int {\n-\treturn 1\n+\treturn 2\n }\n",
		"moved":    "--- a/new/moved.go\n+++ b/new/moved.go\n@@ @@\n func g() int {\n-\tn := 2\n+\tn := 3\n \treturn n\n",
	} {
		if got, err := os.ReadFile(filepath.Join(dir, "patches", name+".patch")); err != nil || string(got) != head+want {
			t.Errorf("%s.patch is now\n%s%v; want\n%s", name, got, err, head+want)
		}
	}
}

func TestAVerdictNamesTheTestThatFailedAndWhatItSaid(t *testing.T) {
	t.Parallel()
	const output = `=== RUN   TestA
--- PASS: TestA (0.10s)
=== RUN   TestB
=== RUN   TestB/one
    b_test.go:12: a step
    b_test.go:14: 3 leaders, want 1
=== RUN   TestB/two
    b_test.go:12: another step
    --- FAIL: TestB/one (0.00s)
--- FAIL: TestB (0.00s)
`
	failed, passed := results(output)
	if failed != "TestB/one (0.00s): b_test.go:12: a step … b_test.go:14: 3 leaders, want 1" || !slices.Equal(passed, []string{"TestA (0.10s)"}) {
		t.Errorf("failed %q, passed %q", failed, passed)
	}
	const late = "=== RUN   TestD\n--- FAIL: TestD (0.00s)\n    d_test.go:3: too late\n    d_test.go:4: more\n"
	if failed, _ := results(late); failed != "TestD (0.00s): d_test.go:3: too late" {
		t.Errorf("a failure that is explained afterwards: %q", failed)
	}
	const nested = "=== NAME  TestE\n    e_test.go:9: 3 rounds\n=== NAME  TestE/one\n    e_test.go:5: oh\n--- FAIL: TestE (0.00s)\n    --- FAIL: TestE/one (0.00s)\n"
	if failed, _ := results(nested); failed != "TestE/one (0.00s): e_test.go:5: oh" {
		t.Errorf("a subtest of a test that says nothing itself: %q", failed)
	}
	if failed, _ := results("=== RUN   TestC\npanic: oh\n"); failed != "TestC: panic: oh" {
		t.Errorf("a panic: %q", failed)
	}
}
