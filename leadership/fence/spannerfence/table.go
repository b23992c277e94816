package spannerfence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"cloud.google.com/go/spanner"

	"regent/leadership"
	"regent/leadership/fence"
)

// DDL creates the table of the zero Table. A table of another name needs the same columns and the
// same key.
//
// Schema evolution: a column is never renamed, retyped or given another meaning. A column that is
// added must be nullable or have a default; Check does not touch it.
const DDL = `CREATE TABLE IF NOT EXISTS Fences (
  Resource     STRING(1024) NOT NULL,
  Election     STRING(128) NOT NULL,
  FencingToken INT64 NOT NULL,
) PRIMARY KEY (Resource)`

// MaxResource is the longest name of a resource, in characters.
const MaxResource = 1024

// Table keeps marks in a table of the caller's database. The zero Table is the one that DDL
// creates.
type Table struct {
	// Name is the table's name if it is not Fences: at most 128 of A-Z, a-z, 0-9 and '_', beginning
	// with a letter, optionally after a named schema and a dot.
	Name string

	// Shared lets transactions that check one resource run in parallel as long as the mark does not
	// rise, for a leader with many transactions at a time. Check then relies on Spanner's default
	// isolation level, SERIALIZABLE: at REPEATABLE_READ, which a client or a transaction may ask
	// for, such a read does not conflict with later writes, and a former leader's write would not
	// be refused.
	Shared bool
}

// Check lets the transaction continue if the leader named by w may write to the resource, and
// raises the resource's mark to w if it is lower. The caller must return the error unchanged from
// the transaction's function; nothing is written then. It is
//
//   - a *leadership.Error of fence.Mark.Admit: TokenStale (a later leader has written) or
//     InvalidArgument, also for a resource whose name is not 1 to MaxResource characters long, or
//     an invalid name of the table;
//   - a *leadership.Error with RecordCorrupt, if the row is not a mark. It is left as it is, and no
//     leader is admitted;
//   - or the client's own, unchanged, which tells the client whether to run the function again. A
//     missing table or column is such an error.
//
// Check is one round trip, two if the mark rises. Call it before anything is decided in the
// transaction, best as its first statement: data read outside the transaction is not protected. One
// Check covers all writes of the transaction to the resource; a transaction that writes to several
// resources checks each. The mark rises when the transaction commits, not before. A later Check in
// the same transaction sees it, because it is raised by a DML statement and not by a mutation,
// which a transaction does not read and which cannot be combined with a caller's DML statement that
// is marked as the last one.
//
// The function may run again: Check keeps no state. For a statement-based transaction pass
// &tx.ReadWriteTransaction.
func (t Table) Check(ctx context.Context, tx *spanner.ReadWriteTransaction, resource string, w fence.Mark) error {
	table, err := t.quoted()
	if err != nil {
		return err
	}
	if n := utf8.RuneCountInString(resource); n < 1 || n > MaxResource || !utf8.ValidString(resource) {
		return invalid("resource", fmt.Sprintf("a resource's name must have 1 to %d UTF-8 characters, not %d", MaxResource, n))
	}
	stored, err := t.read(ctx, tx, table, resource)
	if err != nil {
		return err
	}
	next, err := stored.Admit(w)
	if err != nil || next == stored {
		return err
	}
	return raise(ctx, tx, table, resource, stored, next)
}

// raise writes the mark. It names the columns it changes, so that added columns keep their values.
func raise(ctx context.Context, tx *spanner.ReadWriteTransaction, table, resource string, stored, next fence.Mark) error {
	sql := "UPDATE " + table + " SET Election = @election, FencingToken = @token WHERE Resource = @resource"
	if stored == (fence.Mark{}) {
		sql = "INSERT INTO " + table + " (Resource, Election, FencingToken) VALUES (@resource, @election, @token)"
	}
	statement := spanner.Statement{SQL: sql, Params: map[string]any{
		"resource": resource, "election": string(next.Election), "token": int64(next.Token),
	}}
	_, err := tx.UpdateWithOptions(ctx, statement, spanner.QueryOptions{RequestTag: requestTag})
	return err
}

// requestTag marks the statements in Spanner's statistics.
const requestTag = "app=regent,action=fence"

// read returns the resource's mark, the zero Mark if there is none.
func (t Table) read(ctx context.Context, tx *spanner.ReadWriteTransaction, table, resource string) (fence.Mark, error) {
	sql := "SELECT Election, FencingToken FROM " + table + " WHERE Resource = @resource"
	if !t.Shared {
		sql = "@{LOCK_SCANNED_RANGES=exclusive} " + sql
	}
	statement := spanner.Statement{SQL: sql, Params: map[string]any{"resource": resource}}
	var marks []fence.Mark
	var bad error
	err := tx.QueryWithOptions(ctx, statement, spanner.QueryOptions{RequestTag: requestTag}).Do(func(r *spanner.Row) error {
		m, err := decode(r)
		marks, bad = append(marks, m), cmp.Or(bad, err)
		return nil
	})
	switch {
	case err != nil:
		return fence.Mark{}, err
	case bad != nil:
		return fence.Mark{}, untrusted(table, resource, bad)
	case len(marks) > 1:
		return fence.Mark{}, untrusted(table, resource, fmt.Errorf("it has %d rows: Resource is not the table's key", len(marks)))
	case len(marks) == 1:
		return marks[0], nil
	}
	return fence.Mark{}, nil
}

// decode reads a row strictly. A row without a leader is refused as well: Check never writes it.
func decode(r *spanner.Row) (fence.Mark, error) {
	var election spanner.NullString
	var token spanner.NullInt64
	if err := r.Columns(&election, &token); err != nil {
		return fence.Mark{}, errors.New(spanner.ErrDesc(err))
	}
	m := fence.Mark{Election: leadership.Election(election.StringVal), Token: leadership.Token(token.Int64)}
	_, err := fence.Mark{}.Admit(m)
	return m, err
}

func untrusted(table, resource string, why error) error {
	return &leadership.Error{Code: leadership.RecordCorrupt, Detail: fmt.Sprintf(
		"the mark of resource %q in table %s is invalid (%v); no leader is admitted until an operator has repaired it, "+
			"with a fencing token no lower than any that has written", resource, table, why)}
}

// identifier matches the names of tables, optionally after a schema.
var identifier = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_]{0,127}\.)?[A-Za-z][A-Za-z0-9_]{0,127}$`)

func (t Table) quoted() (string, error) {
	name := cmp.Or(t.Name, "Fences")
	if !identifier.MatchString(name) {
		return "", invalid("table", fmt.Sprintf("a table's name must have at most 128 of A-Z, a-z, 0-9 and '_' and begin with a letter, unlike %q", name))
	}
	return "`" + strings.ReplaceAll(name, ".", "`.`") + "`", nil
}

func invalid(field, detail string) error {
	return &leadership.Error{Code: leadership.InvalidArgument, Field: field, Detail: detail}
}
