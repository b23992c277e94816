package sqlfence_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/sqlfence"
)

var leader = fence.Mark{Election: "planner", Token: 33}

func table(t *testing.T) *sqlfence.Table {
	t.Helper()
	marks, err := sqlfence.New("")
	require.NoError(t, err)
	return marks
}

func TestATablesNameIsNothingButAName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 63)
	for _, name := range []string{"", "marks", "_m", "ops.marks", "select", long, long + "." + long} {
		_, err := sqlfence.New(name)
		assert.NoError(t, err, "New(%q)", name)
	}
	for _, name := range []string{"Marks", "1st", "a b", `a"b`, "a;drop table b", "a.b.c", ".a", "a.", "a-b", "märks", "marks\n", long + "x"} {
		if _, err := sqlfence.New(name); err == nil {
			t.Errorf("New(%q) took it", name)
		}
	}
}

func TestANameIsQuotedWhereverItStands(t *testing.T) {
	t.Parallel()
	marks, err := sqlfence.New("ops.order")
	require.NoError(t, err)
	db := &script{row: []driver.Value{"planner", int64(34)}}
	_ = marks.Check(t.Context(), db.begin(t), "jobs", leader)
	for _, statement := range append(db.asked, marks.Schema()) {
		assert.Contains(t, statement, `"ops"."order"`, "%s\ndoes not name the table", statement)
	}
}

func TestCheckOfAnInvalidMarkSendsNothing(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]fence.Mark{
		"no election": {Token: 1},
		"no token":    {Election: "planner"},
	} {
		db := &script{affected: 1}
		if err := table(t).Check(t.Context(), db.begin(t), "jobs", w); !errors.Is(err, leadership.InvalidArgument) || len(db.asked) > 0 {
			t.Errorf("%s: %v, after %d statements; want INVALID_ARGUMENT and none", name, err, len(db.asked))
		}
	}
	db := &script{affected: 1}
	if err := table(t).Check(t.Context(), db.begin(t), "", leader); !errors.Is(err, leadership.InvalidArgument) || len(db.asked) > 0 {
		t.Errorf("no resource: %v, after %d statements; want INVALID_ARGUMENT and none", err, len(db.asked))
	}
}

func TestCheckAdmitsOnlyWhatTheDatabaseConfirms(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	for name, c := range map[string]struct {
		db   script
		want error
	}{
		"the statement fails":            {script{affected: 1, failure: full}, full},
		"rows are not counted":           {script{affected: -1}, nil},
		"0 rows, and a higher token":     {script{row: []driver.Value{"planner", int64(34)}}, leadership.TokenStale},
		"0 rows, and another election":   {script{row: []driver.Value{"backup", int64(1)}}, leadership.InvalidArgument},
		"0 rows, and no reason for it":   {script{row: []driver.Value{"planner", int64(33)}}, leadership.RecordCorrupt},
		"0 rows, and no mark":            {script{}, sql.ErrNoRows},
		"0 rows, and a mark that is not": {script{row: []driver.Value{"planner", nil}}, nil},
	} {
		err := table(t).Check(t.Context(), c.db.begin(t), "jobs", leader)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	db := &script{affected: 1}
	if err := table(t).Check(t.Context(), db.begin(t), "jobs", leader); err != nil || len(db.asked) != 1 {
		t.Errorf("1 row: %v after %d statements; want nil after one", err, len(db.asked))
	}
}

func TestLandedExplainsZeroRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		db   script
		w    fence.Mark
		want error
	}{
		"a row":                     {script{affected: 1}, leader, nil},
		"several rows":              {script{affected: 3}, leader, nil},
		"a row, without a token":    {script{affected: 1}, fence.Mark{Election: "planner"}, leadership.InvalidArgument},
		"a higher token":            {script{row: []driver.Value{int64(34)}}, leader, leadership.TokenStale},
		"no such row":               {script{}, leader, sql.ErrNoRows},
		"a row that would have let": {script{row: []driver.Value{int64(33)}}, leader, sql.ErrNoRows},
	} {
		db := c.db.open(t)
		err := sqlfence.Landed(t.Context(), db, &c.db, c.w, "SELECT fencing_token FROM jobs WHERE id = $1", 7)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	for name, db := range map[string]*script{"rows are not counted": {affected: -1}, "a token that is NULL": {row: []driver.Value{nil}}} {
		if err := sqlfence.Landed(t.Context(), db.open(t), db, leader, "SELECT"); err == nil || errors.Is(err, sql.ErrNoRows) {
			t.Errorf("%s: %v, want an error that says so", name, err)
		}
	}
}
