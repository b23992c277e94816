package firestorefence_test

import (
	"context"
	"errors"

	"cloud.google.com/go/firestore"

	"regent/leadership"
	"regent/leadership/fence"
	"regent/leadership/fence/firestorefence"
)

// A leader books an entry. One that leads no more is told so, and nothing of its transaction is there.
func ExampleFenced() {
	book := func(ctx context.Context, client *firestore.Client, lease fence.Mark) error {
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
			return errors.Join(errors.New("somebody else leads now"), err)
		}
		return err
	}
	_ = book // is called with fence.Mark{Election: "bookkeeper", Token: 33}, as the lease says
}

// A function that has the transaction only checks after the last read and before the first write.
func ExampleCheck() {
	book := func(tx *firestore.Transaction, account, mark *firestore.DocumentRef, lease fence.Mark) error {
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
	_ = book
}
