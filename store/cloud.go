//go:build !regent_local

package store

import (
	"context"

	"regent/store/firestore"
	"regent/store/spanner"
)

func openFirestore(ctx context.Context, t target, c Config) (Store, error) {
	return opened(firestore.Open(ctx, firestore.Config{Project: t.project, Database: t.database, History: c.History}))
}

func openSpanner(ctx context.Context, t target, c Config) (Store, error) {
	return opened(spanner.Open(ctx, spanner.Config{Database: t.database, History: c.History}))
}

func migrateSpanner(ctx context.Context, t target) error {
	return spanner.Migrate(ctx, spanner.Config{Database: t.database})
}
