package typescript

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"regent/httpapi"
	"regent/leadership/instance"
	"regent/leadership/wire"
	"regent/store/memory"
	"regent/test/machine"
	"regent/test/process"
)

func TestMain(m *testing.M) { machine.MainTogether(m, 0) }

// TestThePackage runs the package's own tests, which have a scripted server and a clock of their
// own, and those that need a real server.
func TestThePackage(t *testing.T) {
	t.Parallel()
	dir := Build(t)
	tests, err := filepath.Glob(filepath.Join(dir, "test", "*.test.js"))
	if err != nil || len(tests) == 0 {
		t.Fatalf("there are no tests: %v", err)
	}
	node := exec.CommandContext(t.Context(), "node", append([]string{"--test"}, tests...)...)
	node.Env = append(os.Environ(), "REGENT_TEST_SERVER="+serve(t), "REGENT_BINARY="+process.Regent.Path(t),
		"REGENT_STATEMENTS="+filepath.Join(top(), "leadership", "statement", "testdata", "statements.json"),
		"REGENT_SQLFENCE="+filepath.Join(top(), "leadership", "fence", "sqlfence", "table.go"))
	if out, err := node.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func serve(t *testing.T) string {
	t.Helper()
	store := memory.New(memory.Config{})
	inst, err := instance.New(instance.Config{Store: store, Journal: store, Alone: true})
	require.NoError(t, err)
	server := httptest.NewServer(httpapi.New(httpapi.Config{Service: inst}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestEachCodeHasAnErrorClass(t *testing.T) {
	t.Parallel()
	dir := Build(t)
	script := `import { errorClasses } from ` + quote(t, filepath.Join(dir, "src", "index.js")) + `;
console.log(JSON.stringify(Object.fromEntries(Object.entries(errorClasses).map(([code, c]) => [code, c.status]))));`
	out, err := exec.CommandContext(t.Context(), "node", "--input-type=module", "--eval", script).Output()
	require.NoError(t, err)
	var got map[string]int
	require.NoError(t, json.Unmarshal(out, &got))
	want := map[string]int{}
	for _, m := range wire.Meanings() {
		want[string(m.Code)] = m.Status
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("codes and statuses (-server +package):\n%s", diff)
	}
}

func quote(t *testing.T, text string) string {
	t.Helper()
	quoted, err := json.Marshal(text)
	require.NoError(t, err)
	return string(quoted)
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return text
}
