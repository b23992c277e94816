package sqlfence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// script is a database with prepared answers. Real ones are tested in test/sqlite.
type script struct {
	affected int64 // by each statement
	failure  error // of each statement
	row      []driver.Value
	asked    []string // the statements and queries, in order
}

func (s *script) open(t *testing.T) *sql.DB {
	db := sql.OpenDB(s)
	t.Cleanup(func() { db.Close() })
	return db
}

func (s *script) begin(t *testing.T) *sql.Tx {
	tx, err := s.open(t).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { tx.Rollback() })
	return tx
}

func (s *script) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s *script) Driver() driver.Driver                        { return nil }
func (s *script) Prepare(string) (driver.Stmt, error) {
	return nil, errors.New("not prepared for that")
}
func (s *script) Close() error                 { return nil }
func (s *script) Begin() (driver.Tx, error)    { return s, nil }
func (s *script) Commit() error                { return nil }
func (s *script) Rollback() error              { return nil }
func (s *script) LastInsertId() (int64, error) { return 0, errors.New("there are no ids") }

func (s *script) RowsAffected() (int64, error) {
	if s.affected < 0 {
		return 0, errors.New("this driver does not count")
	}
	return s.affected, nil
}

func (s *script) ExecContext(_ context.Context, statement string, _ []driver.NamedValue) (driver.Result, error) {
	s.asked = append(s.asked, statement)
	return s, s.failure
}

func (s *script) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	s.asked = append(s.asked, query)
	return &rows{columns: make([]string, len(s.row)), left: s.row}, nil
}

// rows are one row, or none.
type rows struct {
	columns []string
	left    []driver.Value
}

func (r *rows) Columns() []string { return r.columns }
func (r *rows) Close() error      { return nil }

func (r *rows) Next(values []driver.Value) error {
	if len(r.left) == 0 {
		return io.EOF
	}
	copy(values, r.left)
	r.left = nil
	return nil
}
