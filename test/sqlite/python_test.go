package sqlite

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"regent/leadership"
	"regent/leadership/fence"
)

// guard checks a mark as a Python program does, with the package regent_client.
const guard = `
import json, sqlite3, sys
from regent_client import ApiError
from regent_client.fence import guard, schema
file, table, resource, election, token = sys.argv[1:]
db = sqlite3.connect(file, timeout=20)
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
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIPPED, NOT PROVED: python3 is not installed")
	}
	const packages = "../../leadership/client/python"
	if _, err := os.ReadFile(packages + "/regent_client/fence.py"); err != nil { // so that the result is not cached when it changes
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "test.db")
	d := &database{sequence: "INTEGER PRIMARY KEY AUTOINCREMENT"}
	d.open(t, "sqlite", "file:"+file+"?_pragma=busy_timeout(20000)")
	check := func(resource, election, token string) (code leadership.Code, mark leadership.Token) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), python, "-B", "-c", guard, file, d.name+"_marks", resource, election, token)
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
		if err := json.Unmarshal(out, &answer); err != nil {
			t.Fatal(err)
		}
		if answer.Schema != d.marks.Schema() {
			t.Errorf("Python makes the table as\n%s\nand Go as\n%s", answer.Schema, d.marks.Schema())
		}
		return answer.Code, answer.Token
	}
	if err := d.check(t.Context(), "jobs", planner(33)); err != nil {
		t.Fatal(err)
	}
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
