package sqlite

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regent/emulators/need"
	"regent/leadership"
	"regent/leadership/fence"
)

// guard checks a mark as a Python program does, with the package regent_client.
const guard = `
import json, sys
from regent_client import ApiError
from regent_client.fence import guard, schema
driver, source, table, resource, election, token = sys.argv[1:]
db = __import__(driver).connect(source)
answer = {"schema": schema(table)}
try:
    with db:
        guard(db.cursor(), election, int(token), resource=resource, table=table)
except ApiError as error:
    answer |= {"code": error.code, "token": error.problem.get("fencingToken", 0)}
print(json.dumps(answer))
`

func TestPythonAndGoGuardTheSameTable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "test.db")
	for _, c := range []struct {
		name, driver, source, python string
		db                           database
	}{
		{"sqlite", "file:" + file + "?_pragma=busy_timeout(20000)", file, "sqlite3", database{sequence: "INTEGER PRIMARY KEY AUTOINCREMENT"}},
		{"postgres", postgres, postgres, "psycopg2", database{sequence: "BIGSERIAL PRIMARY KEY"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.driver == "" {
				need.Lacks(t, "there is no PostgreSQL")
			}
			python := pythonWith(t, c.python)
			c.db.open(t, c.name, c.driver)
			pythonAndGoGuard(t, &c.db, python, c.python, strings.ReplaceAll(c.source, " sslmode=disable", ""))
		})
	}
}

// pythonWith returns a Python that has the module: the first one found, or Debian's.
func pythonWith(t *testing.T, module string) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), python, "-c", "import "+module).Run() == nil {
			return python
		}
	}
	need.Lacks(t, "no Python has the module "+module)
	return ""
}

func pythonAndGoGuard(t *testing.T, d *database, python, driver, source string) {
	t.Helper()
	const packages = "../../leadership/client/python"
	if _, err := os.ReadFile(packages + "/regent_client/fence.py"); err != nil { // so that the result is not cached when it changes
		t.Fatal(err)
	}
	check := func(resource, election, token string) (code leadership.Code, mark leadership.Token) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), python, "-B", "-c", guard, driver, source, d.name+"_marks", resource, election, token)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+packages)
		var failure bytes.Buffer
		cmd.Stderr = &failure
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, failure.String())
		}
		var answer struct {
			Schema string
			Code   leadership.Code
			Token  leadership.Token
		}
		require.NoError(t, json.Unmarshal(out, &answer))
		if answer.Schema != d.marks.Schema() {
			t.Errorf("Python makes the table as\n%s\nand Go as\n%s", answer.Schema, d.marks.Schema())
		}
		return answer.Code, answer.Token
	}
	require.NoError(t, d.check(t.Context(), "jobs", planner(33)))
	for _, c := range []struct {
		resource, election, token string
		code                      leadership.Code
		mark                      leadership.Token
	}{
		{"jobs", "planner", "32", leadership.TokenStale, 33},
		{"jobs", "planner", "33", "", 0},
		{"jobs", "backup", "99", leadership.InvalidArgument, 0},
		{"jobs", "planner", "35", "", 0},
		{"mails", "planner", "9007199254740991", "", 0},
	} {
		if code, mark := check(c.resource, c.election, c.token); code != c.code || mark != c.mark {
			t.Errorf("%v in Python: %q, %d", c, code, mark)
		}
	}
	var refusal *leadership.Error
	if err := d.check(t.Context(), "jobs", planner(34)); !errors.As(err, &refusal) || refusal.Code != leadership.TokenStale || refusal.Lease.Token != 35 {
		t.Errorf("after token 35 of Python Go says %v, want TOKEN_STALE with it", err)
	}
	for resource, w := range map[string]fence.Mark{"jobs": planner(35), "mails": planner(leadership.MaxToken)} {
		if err := d.check(t.Context(), resource, w); err != nil {
			t.Errorf("%s by %v: %v, after Python with the same token", resource, w, err)
		}
	}
}
