package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"

	"regent/leadership"
)

// writer is a leader that writes in three steps, between which others may take theirs: it checks,
// it writes, and it commits.
type writer struct {
	d     *database
	token leadership.Token
	check func(context.Context, *writer) error
	tx    *sql.Tx
	done  int   // steps
	err   error // of the step that failed; the later ones are not taken
}

// checked begins a transaction and checks in it.
func checked(ctx context.Context, w *writer) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	return w.d.marks.Check(ctx, w.tx, "jobs", planner(w.token))
}

// checkedBefore checks, and begins another transaction for the write: the mistake.
func checkedBefore(ctx context.Context, w *writer) error {
	if err := checked(ctx, w); err != nil {
		return err
	}
	if err := w.tx.Commit(); err != nil {
		return err
	}
	return w.begin(ctx)
}

func (w *writer) begin(ctx context.Context) (err error) {
	if w.tx, err = w.d.BeginTx(ctx, w.d.isolation); err == nil {
		_, err = w.tx.ExecContext(ctx, w.d.impatient)
	}
	return err
}

func (w *writer) step(ctx context.Context) {
	if w.err == nil {
		switch w.done {
		case 0:
			w.err = w.check(ctx, w)
		case 1:
			w.err = w.d.insert(ctx, w.tx, w.token)
		case 2:
			w.err = w.tx.Commit()
		}
		if w.err != nil && w.tx != nil {
			w.tx.Rollback()
		}
	}
	w.done++
}

// orders are all orders in which two writers may make their three steps: true for the first's.
func orders() (all [][]bool) {
	for bits := range 1 << 6 {
		var order []bool
		first := 0
		for i := range 6 {
			order = append(order, bits>>i&1 == 1)
			first += bits >> i & 1
		}
		if first == 3 {
			all = append(all, order)
		}
	}
	return all
}

// play has a former leader and its successor make their steps in that order, and returns them and
// what was written, in order.
func (d *database) play(t *testing.T, order []bool, check func(context.Context, *writer) error) (former, successor *writer, written []int64) {
	t.Helper()
	d.must(t, "DELETE FROM "+d.name+"_marks")
	d.must(t, "DELETE FROM "+d.name+"_log")
	former, successor = &writer{d: d, token: 33, check: check}, &writer{d: d, token: 34, check: check}
	for _, first := range order {
		if first {
			former.step(t.Context())
		} else {
			successor.step(t.Context())
		}
	}
	return former, successor, d.log(t)
}

func TestNoInterleavingLetsALowerTokenWriteLater(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		for _, order := range orders() {
			former, successor, written := d.play(t, order, checked)
			if !slices.IsSorted(written) {
				t.Errorf("order %v: written %v, in the order of their tokens they are not", order, written)
			}
			if former.err != nil && successor.err != nil {
				t.Errorf("order %v: neither wrote: %v; %v", order, former.err, successor.err)
			}
			if slices.Equal(order[:2], []bool{true, false}) && successor.err == nil {
				t.Errorf("order %v: the successor's check did not wait for the former leader's transaction", order)
			}
			if err := d.check(t.Context(), "jobs", planner(34)); err != nil {
				t.Errorf("order %v: the successor cannot write: %v", order, err)
			}
			if err := d.check(t.Context(), "jobs", planner(33)); !errors.Is(err, leadership.TokenStale) {
				t.Errorf("order %v: the former leader afterwards: %v, want TOKEN_STALE", order, err)
			}
		}
	})
}

func TestCheckOutsideTheTransactionIsNotEnough(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		for _, order := range orders() {
			if _, _, written := d.play(t, order, checkedBefore); !slices.IsSorted(written) {
				return
			}
		}
		t.Error("in no order did a lower token's write come last: these orders show nothing")
	})
}
