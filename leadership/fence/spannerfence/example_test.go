package spannerfence_test

import (
	"context"
	"errors"

	"cloud.google.com/go/spanner"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/spannerfence"
)

// A leader books an entry. One that leads no more is told so, and nothing of its transaction is there. The table is made once, by the DDL.
func ExampleTable_Check() {
	book := func(ctx context.Context, client *spanner.Client, lease fence.Mark) error {
		_, err := client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			if err := (spannerfence.Table{}).Check(ctx, tx, "accounts", lease); err != nil {
				return err
			}
			_, err := tx.BatchUpdate(ctx, []spanner.Statement{
				spanner.NewStatement(`UPDATE Accounts SET Balance = Balance - 5 WHERE Id = 1`),
				spanner.NewStatement(`UPDATE Accounts SET Balance = Balance + 5 WHERE Id = 2`),
			})
			return err
		})
		if errors.Is(err, leadership.TokenStale) {
			return errors.Join(errors.New("somebody else leads now"), err)
		}
		return err
	}
	_ = book // is called with fence.Mark{Election: "bookkeeper", Token: 33}, as the lease says
}
