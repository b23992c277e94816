package firestorefence_test

import (
	"context"
	"errors"

	"cloud.google.com/go/firestore"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/firestorefence"
)

// book books an entry for a leader. For a former leader nothing is written.
func book(ctx context.Context, client *firestore.Client, lease fence.Mark) error {
	account := client.Doc("accounts/1")
	mark := firestorefence.Doc(client, "accounts")
	err := client.RunTransaction(ctx, firestorefence.Fenced(mark, lease, func(_ context.Context, tx *firestore.Transaction) error {
		snap, err := tx.Get(account)
		if err != nil {
			return err
		}
		balance, _ := snap.Data()["balance"].(int64)
		return tx.Set(account, map[string]any{"balance": balance - 5})
	}))
	if errors.Is(err, leadership.TokenStale) {
		return errors.Join(errors.New("another leader has taken over"), err)
	}
	return err
}

// A leader books an entry:
//
//	err := book(ctx, client, fence.Of(lease))
func ExampleFenced() {
	_ = book
	// Output:
}

// bookChecked books in a transaction that its caller began. It checks after the last read and
// before the first write.
func bookChecked(tx *firestore.Transaction, account, mark *firestore.DocumentRef, lease fence.Mark) error {
	snap, err := tx.Get(account)
	if err != nil {
		return err
	}
	if err := firestorefence.Check(tx, mark, lease); err != nil {
		return err
	}
	balance, _ := snap.Data()["balance"].(int64)
	return tx.Set(account, map[string]any{"balance": balance - 5})
}

// A function that gets only the transaction checks after the last read and before the first write.
func ExampleCheck() {
	_ = bookChecked
	// Output:
}
