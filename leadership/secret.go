package leadership

import (
	"context"
	"crypto/rand"
	"fmt"
)

// LogSecret is the kind of the log that keeps the shared secret of a store.
const LogSecret LogKind = "secret"

// secretLog is where the secret is kept. It belongs to an election that no caller can lead.
var secretLog = LogID{Election: "regent.secret", Kind: LogSecret}

// sharedSecretBytes is the length of the secret.
const sharedSecretBytes = 32

// secretHead is the text of the secret's head.
type secretHead struct {
	Secret []byte `json:"secret"`
}

func (l Log) secret() ([]byte, error) {
	var h secretHead
	if err := l.readHead(&h); err != nil {
		return nil, err
	}
	if n := len(h.Secret); n != sharedSecretBytes {
		return nil, &Error{Code: RecordCorrupt, Detail: fmt.Sprintf("the shared secret of the store has %d bytes, not %d", n, sharedSecretBytes)}
	}
	return h.Secret, nil
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
		made := make([]byte, sharedSecretBytes)
		rand.Read(made) // it never fails
		log, err = j.Amend(ctx, secretLog, func(l Log) (LogChange, error) {
			if l.Text != "" {
				return LogChange{}, nil
			}
			return LogChange{Text: headText(secretHead{made})}, nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("the shared secret of the store: %w", err)
	}
	return log.secret()
}
