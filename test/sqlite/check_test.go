package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"regent/leadership"
	"regent/leadership/fence"
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

func TestMarkOfEachResourceOnlyRises(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		for _, c := range []struct {
			resource string
			w        fence.Mark
			want     error
			current  leadership.Token
		}{
			{"jobs", planner(33), nil, 0},
			{"jobs", planner(33), nil, 0}, // a leader makes many writes
			{"jobs", planner(34), nil, 0},
			{"jobs", planner(33), leadership.TokenStale, 34},
			{"jobs", fence.Mark{Election: "backup", Token: 99}, leadership.InvalidArgument, 0},
			{"jobs", fence.Mark{Election: "backup", Token: 1}, leadership.InvalidArgument, 0},
			{"jobs", planner(34), nil, 0}, // a refused check leaves no trace
			{"it's; another \"one\"", planner(1), nil, 0},
			{"jobs", planner(leadership.MaxToken), nil, 0},
			{"jobs", planner(leadership.MaxToken - 1), leadership.TokenStale, leadership.MaxToken},
		} {
			err := d.check(t.Context(), c.resource, c.w)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("%q by %v: %v, want %v", c.resource, c.w, err, c.want)
			}
			var refusal *leadership.Error
			if c.current != 0 && (!errors.As(err, &refusal) || refusal.Lease.Token != c.current) {
				t.Errorf("%q by %v: %v, want the token %d", c.resource, c.w, err, c.current)
			}
		}
	})
}

func TestRolledBackCheckLeavesNoMark(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		broken := errors.New("the caller thought better of it")
		if err := d.write(t.Context(), "jobs", planner(34), func(*sql.Tx) error { return broken }); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		if err := d.check(t.Context(), "jobs", planner(33)); err != nil {
			t.Errorf("%v; want nil, for 34 has written nothing", err)
		}
	})
}

func TestOneCheckCoversManyWrites(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		thousand := func(token leadership.Token) error {
			return d.write(t.Context(), "jobs", planner(token), func(tx *sql.Tx) error {
				for range 1000 {
					if err := d.insert(t.Context(), tx, token); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := thousand(34); err != nil {
			t.Fatal(err)
		}
		if err := thousand(33); !errors.Is(err, leadership.TokenStale) {
			t.Errorf("%v, want TOKEN_STALE", err)
		}
		if n := len(d.log(t)); n != 1000 {
			t.Errorf("%d writes, want the 1000 of the leader and none of the former one", n)
		}
	})
}
