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

// DefaultTable is the name of the table of marks, unless another is given.
const DefaultTable = "regent_fence"

// Table is the table of marks. All methods may be called at the same time.
type Table struct {
	schema, raise, read string
}

// identifier is a name that means the same with quotes and without, in PostgreSQL and in SQLite, maybe after that of a schema. It is quoted, for it
// may be a word of the language.
var identifier = regexp.MustCompile(`^([a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,62}$`)

// New returns the table of that name, DefaultTable if it is empty. It does not look at the database. A name is made of a-z, 0-9 and '_', at
// most 63 of them, and does not begin with a digit; a schema may stand before it, with a '.' between.
func New(name string) (*Table, error) {
	name = cmp.Or(name, DefaultTable)
	if !identifier.MatchString(name) {
		return nil, fmt.Errorf("sqlfence: a table's name is made of a-z, 0-9 and '_', at most 63 of them, maybe after a schema's and a '.', not %.140q",
			name)
	}
	name = `"` + strings.ReplaceAll(name, ".", `"."`) + `"`
	return &Table{
		schema: `CREATE TABLE IF NOT EXISTS ` + name + ` (
	resource      TEXT   NOT NULL PRIMARY KEY,
	election      TEXT   NOT NULL,
	fencing_token BIGINT NOT NULL CHECK (fencing_token > 0)
)`,
		// SQLite counts parameters in the order in which they appear, PostgreSQL by their numbers: here both are the same.
		raise: `INSERT INTO ` + name + ` AS mark (resource, election, fencing_token) VALUES ($1, $2, $3)
	ON CONFLICT (resource) DO UPDATE SET fencing_token = excluded.fencing_token
	WHERE mark.election = excluded.election AND mark.fencing_token <= excluded.fencing_token`,
		read: `SELECT election, fencing_token FROM ` + name + ` WHERE resource = $1`,
	}, nil
}

// Schema is the statement that creates the table, if it is not there: for whoever migrates the database. A row of it is never deleted while a
// former leader may still be at work, for it would take the mark with it.
func (t *Table) Schema() string { return t.schema }

// Check raises the mark of the resource to that of the leader, or returns why the leader must not write to it. A resource is any text
// that the writers agree on: a table's name, a customer's number. Once the transaction has committed, no leader with a lower token writes
// to the resource any more. One check stands for all that the transaction does after it, a single operation or a thousand. Check
// waits while another transaction that has checked the resource is under way.
//
// After any error the caller rolls back. Errors:
//
//   - TokenStale, with the mark's token: a later leader has written. Whoever is told this leads no more, and stops.
//   - InvalidArgument: w names no leader or one of another election than the resource's, or the resource has no name.
//   - RecordCorrupt: the resource's row is none that Check has written.
//   - any other is the driver's own, wrapped: a serialization failure, a busy database, ctx's. The transaction may be repeated.
func (t *Table) Check(ctx context.Context, tx *sql.Tx, resource string, w fence.Mark) error {
	if _, err := (fence.Mark{}).Admit(w); err != nil {
		return err
	}
	if resource == "" {
		return &leadership.Error{Code: leadership.InvalidArgument, Field: "resource", Detail: "a resource needs a name"}
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
	return t.refusal(ctx, tx, resource, w)
}

// refusal says why the mark was not raised. Its row is locked, also if it was left as it is, so that this is what the upsert saw.
func (t *Table) refusal(ctx context.Context, tx *sql.Tx, resource string, w fence.Mark) error {
	var m fence.Mark
	if err := tx.QueryRowContext(ctx, t.read, resource).Scan(&m.Election, &m.Token); err != nil {
		return fmt.Errorf("sqlfence: read the mark of %q: %w", resource, err)
	}
	if _, err := m.Admit(w); err != nil {
		return err
	}
	return &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf(
		"the mark of %q is election %q with fencing token %d, and was not raised to token %d: the table is not as Schema makes it",
		resource, m.Election, m.Token, w.Token)}
}

// Queryer reads a row: an *sql.DB, *sql.Conn or *sql.Tx.
type Queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Landed returns nil if result, that of an UPDATE of a row that keeps its own token, is of one row or more; or it returns why the UPDATE
// found none to write. query and args read the token of the row, by its key alone; they are used only then. Errors:
//
//   - TokenStale, with the row's token: a later leader has written. Whoever is told this leads no more, and stops.
//   - InvalidArgument: w names no leader, whatever was written.
//   - sql.ErrNoRows: there is no such row, or there is, and its token would have let w write: then something else in the UPDATE's
//     condition did not hold, or the row has come since.
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
		return fmt.Errorf("sqlfence: nothing was written, there is no such row: %w", err)
	case err != nil:
		return fmt.Errorf("sqlfence: read the token of the row: %w", err)
	}
	if _, err := m.Admit(w); err != nil {
		return err
	}
	return fmt.Errorf("sqlfence: nothing was written, though the row's fencing token %d would have let token %d: no row met the condition: %w",
		m.Token, w.Token, sql.ErrNoRows)
}
