package mutants_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"regent/test/mutants"
)

// small is a module to plant bugs in.
var small = map[string]string{
	"go.mod": "module small\n\ngo 1.26\n",
	"sum/sum.go": `package sum

const zero = 0

type number int

func Of(a, b int) int { return a + b }

func Twice(a int) int { return a + a }

func Zero() int { return zero }

func (n number) plus(_ string, more ...int) (sum int) {
	sum = int(n)
	defer func() { sum++ }()
	for _, m := range more {
		sum += m
	}
	return sum - 1
}

func Unnamed(int, ...string) (is bool) { return true }

func Any[T any](a T, _ ...T) T { return a }
`,
	"sum/sum_test.go": `package sum

import "testing"

func TestOf(t *testing.T) {
	if Of(2, 3) != 5 {
		t.Error("2 + 3 is not 5")
	}
}

func TestThatHangs(t *testing.T) {
	for Of(2, 3) != 5 {
	}
}

func TestLong(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long")
	}
	TestOf(t)
}

func TestShapes(t *testing.T) {
	if number(1).plus("", 2, 3) != 6 || !Unnamed(1, "a") || Any("a", "b") != "a" || Zero() != 0 {
		t.Error("a shape is wrong")
	}
}
`,
	"abs/abs.go": `package abs

func Of(n int) (m int) {
	switch {
	case n == 0:
		m++
	case n < 0 && n != -7:
		n = -n
	}
	defer func() { m-- }()
	return n + 1
}
`,
	"abs/abs_test.go": `package abs

import "testing"

func TestOf(t *testing.T) {
	if Of(-3) != 3 || Of(3) != 3 {
		t.Error("the absolute value of 3 is not 3")
	}
}

func TestOfNothing(t *testing.T) {
	if Of(0) != 0 {
		t.Error("the absolute value of 0 is not 0")
	}
}
`,
	"bad/bad_test.go": `package bad

import "testing"

func TestThatFails(t *testing.T) { t.Error("always") }
`,
}

// smallModule writes the module into a folder of its own.
func smallModule(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range small {
		file := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return root
}

// What is done with 0 changes nothing, so no test can notice those two.
func TestComputedMutationsThatNoTestNoticesSurvive(t *testing.T) {
	t.Parallel()
	killed := map[string]string{}
	s := mutants.Survey{Root: smallModule(t), Dir: "abs", By: []string{"abs"}, Together: 1, Heard: func(m mutants.Mutation, by string) { killed[m.String()] = by }}
	r, err := s.Run(t.Context())
	require.NoError(t, err)
	want := map[string]string{
		"abs/abs.go:5: Of: not n == 0":                      "--- FAIL: TestOf",
		"abs/abs.go:6: Of: without m++":                     "",
		"abs/abs.go:7: Of: not n < 0 && n != -7":            "--- FAIL: TestOf",
		"abs/abs.go:7: Of: not n < 0":                       "--- FAIL: TestOf",
		"abs/abs.go:7: Of: n < 0 with <=":                   "",
		"abs/abs.go:7: Of: not n != -7":                     "--- FAIL: TestOf",
		"abs/abs.go:8: Of: without n = -n":                  "--- FAIL: TestOf",
		"abs/abs.go:10: Of: without defer func() { m-- }()": "--- FAIL: TestOf",
		"abs/abs.go:10: Of: without m--":                    "--- FAIL: TestOf",
	}
	if !maps.Equal(killed, want) || r.Mutations != len(want) || len(r.Survivors) != 2 {
		t.Errorf("%d mutations, %d survive: %q", r.Mutations, len(r.Survivors), killed)
	}
}

func TestABugIsCaughtOnlyIfItsTestsFailBecauseOfIt(t *testing.T) {
	t.Parallel()
	root := smallModule(t)
	plant := func(name, removed, added, tests string) mutants.Mutant {
		m, err := mutants.Parse(name, "Wrong.\n\nProperty: tokens only rise\nCaught-by: "+tests+
			"\n--- a/sum/sum.go\n+++ b/sum/sum.go\n@@ @@\n-"+removed+"\n+"+added+"\n")
		require.NoError(t, err)
		return m
	}
	const (
		of, minus   = "func Of(a, b int) int { return a + b }", "func Of(a, b int) int { return a - b }"
		unnamed     = "func Unnamed(int, ...string) (is bool) { return true }"
		generic     = "func Any[T any](a T, _ ...T) T { return a }"
		twice, none = "func Twice(a int) int { return a + a }", "func Twice(a int) int { return a - a }"
	)
	elsewhere := plant("one that needs emulators", of, minus, "sum TestOf")
	elsewhere.Emulators = true
	tried := []struct {
		mutants.Mutant
		want mutants.Outcome
	}{
		{plant("one that is seen", of, minus, "sum TestOf"), mutants.Caught},
		{plant("one that lets its tests hang", of, minus, "sum TestThatHangs"), mutants.Caught},
		{plant("one whose tests see nothing, but others do", of, minus, "sum TestShapes"), mutants.Caught},
		{plant("one that only a long form sees", of, minus, "sum TestLong"), mutants.Caught},
		{plant("one whose tests are gone", of, minus, "sum TestNothing"), mutants.Caught},
		{plant("one that no switch turns on", "const zero = 0", "const zero = 1", "sum"), mutants.Caught},
		{plant("one in a method", "	return sum - 1", "	sum, extra := sum-1, 1; return sum + extra", "sum"), mutants.Caught},
		{plant("one in a function whose parameters have no names", unnamed, strings.Replace(unnamed, "true", "false", 1), "sum"), mutants.Caught},
		{plant("one in a generic function", generic, strings.Replace(generic, "return a", "var none T; return none", 1), "sum"), mutants.Caught},
		{plant("one that is not seen", twice, none, "sum TestOf"), mutants.Survived},
		{plant("one that does not build", of, strings.Replace(of, "a + b", "a + c", 1), "sum TestOf"), mutants.Broken},
		{plant("one whose text is gone", "func Gone() {", "func Gone() { return", "sum TestOf"), mutants.Broken},
		{plant("one whose tests fail without it, too", of, minus, "bad"), mutants.Broken},
		{elsewhere, mutants.NotTried},
	}
	c := mutants.Config{Root: root, Limit: 3 * time.Second}
	for _, bug := range tried {
		c.Mutants = append(c.Mutants, bug.Mutant)
	}
	verdicts, err := mutants.Run(t.Context(), c)
	if err != nil || len(verdicts) != len(tried) {
		t.Fatalf("%d verdicts, %v", len(verdicts), err)
	}
	for i, v := range verdicts {
		if v.Outcome != tried[i].want {
			t.Errorf("%s is %s (%s), want %s", v.Mutant.Name, v.Outcome, v.Why, tried[i].want)
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
