package service

import (
	"context"
	"fmt"

	"regent/leadership"
	"regent/leadership/rule"
)

// SharedSecret returns the secret that all programs on a store share: 32 random bytes, made by the
// first call. Values derived from it (by HKDF or HMAC, with a label of its own for each purpose)
// are the same in all of them, and after a restart. It moves with the elections to another store.
// It never changes, so the caller may keep it.
//
// Errors: those of a Journal.
func SharedSecret(ctx context.Context, j Journal) ([]byte, error) {
	log, err := j.Look(ctx, rule.SecretLog)
	if err == nil && log.Text == "" {
		made := leadership.NewKey()
		log, err = j.Amend(ctx, rule.SecretLog, func(l rule.Log) (rule.LogChange, error) {
			if l.Text != "" {
				return rule.LogChange{}, nil
			}
			return rule.SecretChange(made), nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("the shared secret of the store: %w", err)
	}
	return log.Secret()
}
