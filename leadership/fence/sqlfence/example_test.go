package sqlfence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/sqlfence"
)

// One check covers everything that the transaction does after it.
func ExampleTable_Check() {
	db := sql.OpenDB(&script{affected: 1}) // use a real database here
	marks, err := sqlfence.New("")
	if err != nil {
		panic(err)
	}
	pay := func(ctx context.Context, leader fence.Mark, invoices ...int) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // no effect after a commit
		if err := marks.Check(ctx, tx, "invoices", leader); err != nil {
			return err
		}
		for _, id := range invoices {
			if _, err := tx.ExecContext(ctx, "UPDATE invoices SET paid = TRUE WHERE id = $1", id); err != nil {
				return err
			}
		}
		return tx.Commit()
	}
	fmt.Println(pay(context.Background(), fence.Mark{Election: "planner", Token: 33}, 7, 8, 9))
	// Output:
	// <nil>
}

// A row that keeps its own token needs no table of marks.
func ExampleLanded() {
	// use a real database here
	db := sql.OpenDB(&script{affected: 0, row: []driver.Value{int64(34)}})
	finish := func(ctx context.Context, leader fence.Mark, job int) error {
		result, err := db.ExecContext(ctx,
			"UPDATE jobs SET state = $1, fencing_token = $2 WHERE id = $3 AND fencing_token <= $2", "done", int64(leader.Token), job)
		if err != nil {
			return err
		}
		return sqlfence.Landed(ctx, db, result, leader, "SELECT fencing_token FROM jobs WHERE id = $1", job)
	}
	err := finish(context.Background(), fence.Mark{Election: "planner", Token: 33}, 7)
	fmt.Println(errors.Is(err, leadership.TokenStale))
	// Output:
	// true
}

func ExampleTable_Schema() {
	marks, err := sqlfence.New("")
	if err != nil {
		panic(err)
	}
	fmt.Println(marks.Schema())
	// Output:
	// CREATE TABLE IF NOT EXISTS "regent_fence" (
	// 	resource      TEXT   NOT NULL PRIMARY KEY,
	// 	election      TEXT   NOT NULL,
	// 	fencing_token BIGINT NOT NULL CHECK (fencing_token > 0)
	// )
}
