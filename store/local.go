//go:build regent_local

package store

import (
	"context"
	"errors"
)

var errLocal = errors.New("store: this regent, as make run builds it, is without Firestore and Spanner; make build builds one with them")

func openFirestore(context.Context, target, Config) (Store, error) { return nil, errLocal }
func openSpanner(context.Context, target, Config) (Store, error)   { return nil, errLocal }
func migrateSpanner(context.Context, target) error                 { return errLocal }
