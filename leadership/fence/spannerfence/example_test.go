package spannerfence_test

import (
	"context"
	"errors"

	"cloud.google.com/go/spanner"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/spannerfence"
)

// book books an entry for a leader. For a former leader nothing is written. The table of marks is
// created once, by DDL.
func book(ctx context.Context, client *spanner.Client, lease fence.Mark) error {
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
		return errors.Join(errors.New("another leader has taken over"), err)
	}
	return err
}

// A leader books an entry:
//
//	err := book(ctx, client, fence.Of(lease))
func ExampleTable_Check() {
	_ = book
	// Output:
}
