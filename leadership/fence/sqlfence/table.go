package sqlfence

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"regent/leadership"
	"regent/leadership/fence"
)

// DefaultTable is the default name of the table of marks.
const DefaultTable = "regent_fence"

// Table is the table of marks. Its methods may be called concurrently.
type Table struct {
	schema, raise, read string
}

// identifier matches names that mean the same with and without quotes in PostgreSQL and SQLite,
// optionally after a schema. The name is quoted, because it may be a keyword.
var identifier = regexp.MustCompile(`^([a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,62}$`)

// New returns the table of that name, DefaultTable if it is empty. It does not access the database.
// A name has at most 63 characters of a-z, 0-9 and '_', and does not begin with a digit; a schema
// and a '.' may come before it.
func New(name string) (*Table, error) {
	name = cmp.Or(name, DefaultTable)
	if !identifier.MatchString(name) {
		return nil, fmt.Errorf("sqlfence: a table's name must have at most 63 of a-z, 0-9 and '_', optionally after a schema and a '.', unlike %.140q",
			name)
	}
	name = `"` + strings.ReplaceAll(name, ".", `"."`) + `"`
	return &Table{
		schema: `CREATE TABLE IF NOT EXISTS ` + name + ` (
	resource      TEXT   NOT NULL PRIMARY KEY,
	election      TEXT   NOT NULL,
	fencing_token BIGINT NOT NULL CHECK (fencing_token > 0)
)`,
		// SQLite numbers parameters in the order in which they appear, PostgreSQL by their names:
		// here both agree.
		raise: `INSERT INTO ` + name + ` AS mark (resource, election, fencing_token) VALUES ($1, $2, $3)
	ON CONFLICT (resource) DO UPDATE SET fencing_token = excluded.fencing_token
	WHERE mark.election = excluded.election AND mark.fencing_token <= excluded.fencing_token`,
		read: `SELECT election, fencing_token FROM ` + name + ` WHERE resource = $1`,
	}, nil
}

// Schema returns the statement that creates the table if it does not exist, for database
// migrations. Do not delete a row while a former leader may still be active: the mark would be
// lost.
func (t *Table) Schema() string { return t.schema }

// Check raises the mark of the resource to the leader's token, or returns why the leader must not
// write to it. A resource is any text that the writers agree on: a table's name, a customer's
// number. Once the transaction has committed, no leader with a lower token can write to the
// resource. One check covers everything that the transaction does after it. Check waits for other
// transactions in progress that have checked the resource.
//
// After any error the caller must roll back. Errors:
//
//   - TokenStale, with the mark's token: a later leader has written; see fence.Mark.Admit.
//   - InvalidArgument: w is not a valid mark or is of another election than the resource's, or the
//     resource's name is empty.
//   - RecordCorrupt: the resource's row was not written by Check.
//   - any other is the driver's own, wrapped: a serialization failure, a busy database, ctx's. The
//     transaction may be repeated.
func (t *Table) Check(ctx context.Context, tx *sql.Tx, resource string, w fence.Mark) error {
	if _, err := (fence.Mark{}).Admit(w); err != nil {
		return err
	}
	if resource == "" {
		return &leadership.Error{Code: leadership.InvalidArgument, Field: "resource", Detail: "the resource's name is empty"}
	}
	result, err := tx.ExecContext(ctx, t.raise, resource, string(w.Election), int64(w.Token))
	if err != nil {
		return fmt.Errorf("sqlfence: raise the mark of %q: %w", resource, err)
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return fmt.Errorf("sqlfence: raise the mark of %q: %w", resource, err)
	}
	if rows == 1 {
		return nil
	}
	// Its row is locked even if the upsert left it unchanged, so this sees what the upsert saw.
	var m fence.Mark
	if err := tx.QueryRowContext(ctx, t.read, resource).Scan(&m.Election, &m.Token); err != nil {
		return fmt.Errorf("sqlfence: read the mark of %q: %w", resource, err)
	}
	if _, err := m.Admit(w); err != nil {
		return err
	}
	return &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf(
		"the mark of %q is election %q with fencing token %d, but was not raised to token %d: the table differs from Schema",
		resource, m.Election, m.Token, w.Token)}
}

// Queryer reads a row: an *sql.DB, *sql.Conn or *sql.Tx.
type Queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Landed returns nil if result, of an UPDATE of a row that keeps its own token, affected one row or
// more; otherwise it returns why the UPDATE found no row. query and args must read the row's token
// by its key alone; they run only in that case. The row's token is taken for one of w's election.
// Errors:
//
//   - TokenStale, with the row's token: a later leader has written; see fence.Mark.Admit.
//   - InvalidArgument: w is not a valid mark, whatever was written.
//   - sql.ErrNoRows: the row does not exist, or its token would have admitted w: then another part
//     of the UPDATE's condition did not hold, or the row was inserted since.
//   - any other is the driver's own, wrapped.
func Landed(ctx context.Context, db Queryer, result sql.Result, w fence.Mark, query string, args ...any) error {
	if _, err := (fence.Mark{}).Admit(w); err != nil {
		return err
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return fmt.Errorf("sqlfence: count the rows that were written: %w", err)
	}
	if rows > 0 {
		return nil
	}
	m := fence.Mark{Election: w.Election}
	switch err := db.QueryRowContext(ctx, query, args...).Scan(&m.Token); {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("sqlfence: nothing was written: the row does not exist: %w", err)
	case err != nil:
		return fmt.Errorf("sqlfence: read the token of the row: %w", err)
	}
	if _, err := m.Admit(w); err != nil {
		return err
	}
	return fmt.Errorf("sqlfence: nothing was written: the row's fencing token %d admits token %d, but no row met the rest of the condition: %w",
		m.Token, w.Token, sql.ErrNoRows)
}
