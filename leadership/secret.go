package leadership

import (
	"context"
	"fmt"
)

// LogSecret is the kind of the log that keeps the shared secret of a store.
const LogSecret LogKind = "secret"

// secretLog is where the secret is kept. It belongs to an election that no caller can lead.
var secretLog = LogID{Election: "regent.secret", Kind: LogSecret}

// secretChange writes the secret as the body of its log, and its hash as the mark. So a program of
// version 5, which does not know the log, takes it for a checkpoint: when it moves or raises the
// store it writes another mark, and keeps the body.
func secretChange(secret Key) LogChange {
	return LogChange{Text: headText(Mark{Key: secret.Hash()}), Body: secret.Text()}
}

func (l Log) secret() ([]byte, error) {
	secret, err := ParseKey(l.Body)
	if err != nil {
		return nil, &Error{Code: RecordCorrupt, Detail: "the shared secret of the store cannot be read: it is not 32 bytes in base64url"}
	}
	return secret[:], nil
}

// SharedSecret returns the secret that all programs on a store share: 32 random bytes, made by the
// first of them that asks. Whatever is derived from it (by HKDF or HMAC, with a label of its own
// for each purpose) is the same in all of them, and after a restart. It moves with the elections to
// another store. The caller may keep it; it never changes.
//
// Errors: those of a Journal.
func SharedSecret(ctx context.Context, j Journal) ([]byte, error) {
	log, err := j.Look(ctx, secretLog)
	if err == nil && log.Text == "" {
		made := NewKey()
		log, err = j.Amend(ctx, secretLog, func(l Log) (LogChange, error) {
			if l.Text != "" {
				return LogChange{}, nil
			}
			return secretChange(made), nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("the shared secret of the store: %w", err)
	}
	return log.secret()
}
