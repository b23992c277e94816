package sqlite

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lib/pq"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"regent/emulators/need"
	"regent/leadership/fence/sqlfence"
)

// database is a real database with a table of marks, a row that leaders write to, and a log of what
// they wrote.
type database struct {
	*sql.DB
	marks     *sqlfence.Table
	name      string // prefix of its tables
	impatient string // makes a transaction wait for no more than a moment
	sequence  string // the type of a column that numbers its rows
	isolation *sql.TxOptions
}

// onEach runs the test on each available database, at each of its isolation levels.
func onEach(t *testing.T, test func(*testing.T, *database)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		file := "file:" + filepath.Join(t.TempDir(), "test.db") + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(20000)&_pragma=synchronous(OFF)"
		d := &database{impatient: "PRAGMA busy_timeout = 20", sequence: "INTEGER PRIMARY KEY AUTOINCREMENT"}
		d.open(t, "sqlite", file)
		test(t, d)
	})
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		t.Run("PostgreSQL, "+level.String(), func(t *testing.T) {
			t.Parallel()
			if postgres == "" {
				need.Lacks(t, "there is no PostgreSQL; install it, or set REGENT_POSTGRES to the URL of a database")
			}
			d := &database{impatient: "SET LOCAL lock_timeout = 20", sequence: "BIGSERIAL PRIMARY KEY", isolation: &sql.TxOptions{Isolation: level}}
			d.open(t, "postgres", postgres)
			test(t, d)
		})
	}
}

// conflict says whether the transaction failed because another came first, and would be repeated.
func conflict(err error) bool {
	var e *pq.Error
	return errors.As(err, &e) && e.Code == "40001"
}

func (d *database) open(t *testing.T, driver, source string) {
	t.Helper()
	db, err := sql.Open(driver, source)
	require.NoError(t, err)
	d.DB, d.name = db, "t_"+strings.ToLower(rand.Text())
	if d.marks, err = sqlfence.New(d.name + "_marks"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, table := range []string{"_marks", "_row", "_log"} {
			d.Exec("DROP TABLE IF EXISTS " + d.name + table)
		}
		d.Close()
	})
	d.must(t, d.marks.Schema())
	d.must(t, d.marks.Schema()) // a migration may run twice
	d.must(t, "CREATE TABLE "+d.name+"_row (id BIGINT PRIMARY KEY, value BIGINT NOT NULL, fencing_token BIGINT NOT NULL DEFAULT 0)")
	d.must(t, "INSERT INTO "+d.name+"_row (id, value) VALUES (1, 0)")
	d.must(t, "CREATE TABLE "+d.name+"_log (seq "+d.sequence+", token BIGINT NOT NULL)")
}

func (d *database) must(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := d.Exec(statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// log returns the tokens of all committed writes, in their order.
func (d *database) log(t *testing.T) (tokens []int64) {
	t.Helper()
	rows, err := d.Query("SELECT token FROM " + d.name + "_log ORDER BY seq")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var token int64
		require.NoError(t, rows.Scan(&token))
		tokens = append(tokens, token)
	}
	require.NoError(t, rows.Err())
	return tokens
}
