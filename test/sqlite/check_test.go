package sqlite

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"hash/crc32"
	"testing"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/fencetest"
)

func planner(token leadership.Token) fence.Mark { return fence.Mark{Election: "planner", Token: token} }

// check runs a transaction that only checks.
func (d *database) check(ctx context.Context, resource string, w fence.Mark) error {
	return d.write(ctx, resource, w, func(*sql.Tx) error { return nil })
}

// write runs a transaction that checks, and then does what it is given.
func (d *database) write(ctx context.Context, resource string, w fence.Mark, do func(*sql.Tx) error) error {
	tx, err := d.BeginTx(ctx, d.isolation)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after a commit
	if err := d.marks.Check(ctx, tx, resource, w); err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// insert is a write: an entry in the log.
func (d *database) insert(ctx context.Context, tx *sql.Tx, token leadership.Token) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO "+d.name+"_log (token) VALUES ($1)", int64(token))
	return err
}

func TestADatabaseIsAFence(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		fencetest.Run(t, func(testing.TB) fencetest.Place { return d.place() })
	})
}

// place has resources of its own in the database. A value is a row whose id is made of the
// resource's name.
func (d *database) place() fencetest.Place {
	prefix := rand.Text() + " "
	id := func(resource string) int64 { return int64(crc32.ChecksumIEEE([]byte(prefix + resource))) }
	write := func(ctx context.Context, resource string, w fence.Mark, value int64, end error) (err error) {
		for again := true; again; again = conflict(err) {
			err = d.write(ctx, prefix+resource, w, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "INSERT INTO "+d.name+"_row (id, value) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET value = excluded.value", id(resource), value)
				return cmp.Or(err, end)
			})
		}
		return err
	}
	return fencetest.Place{
		Write: func(ctx context.Context, resource string, w fence.Mark, value int64) error {
			return write(ctx, resource, w, value, nil)
		},
		Abandon: func(ctx context.Context, resource string, w fence.Mark, why error) error {
			return write(ctx, resource, w, 0, why)
		},
		Read: func(t testing.TB, resource string) (m fence.Mark, value int64) {
			err := d.QueryRowContext(t.Context(), "SELECT election, mark.fencing_token, value FROM "+d.name+"_marks mark, "+d.name+"_row WHERE resource = $1 AND id = $2", prefix+resource, id(resource)).
				Scan(&m.Election, &m.Token, &value)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				t.Fatal(err)
			}
			return m, value
		},
	}
}
