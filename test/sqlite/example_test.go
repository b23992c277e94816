package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/sqlfence"
)

func Example() {
	db, err := sql.Open("sqlite", "file::memory:")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection would have a memory of its own
	marks, err := sqlfence.New("")
	if err != nil {
		panic(err)
	}
	if _, err := db.Exec(marks.Schema() + "; CREATE TABLE invoices (id INTEGER PRIMARY KEY, paid_by INTEGER)"); err != nil {
		panic(err)
	}
	pay := func(ctx context.Context, leader fence.Mark, invoice int) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // does nothing after a commit
		if err := marks.Check(ctx, tx, "invoices", leader); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO invoices (id, paid_by) VALUES ($1, $2)", invoice, int64(leader.Token)); err != nil {
			return err
		}
		return tx.Commit()
	}
	fmt.Println(pay(context.Background(), fence.Mark{Election: "planner", Token: 33}, 1))
	fmt.Println(pay(context.Background(), fence.Mark{Election: "planner", Token: 34}, 2))
	late := pay(context.Background(), fence.Mark{Election: "planner", Token: 33}, 3)
	fmt.Println(errors.Is(late, leadership.TokenStale))
	// Output:
	// <nil>
	// <nil>
	// true
}
