package rule

import "regent/leadership"

// LogSecret is the kind of the log that keeps the shared secret of a store.
const LogSecret LogKind = "secret"

// SecretLog is the log that keeps the secret. It belongs to an election that no caller can lead.
var SecretLog = LogID{Election: "regent.secret", Kind: LogSecret}

// SecretChange returns the change that writes the secret as the body of its log, with its hash as
// the mark. A program of version 5, which does not know this log, takes it for a checkpoint: when
// it moves or raises the store it writes another mark, and keeps the body.
func SecretChange(secret leadership.Key) LogChange {
	return LogChange{Text: HeadText(Mark{Key: secret.Hash()}), Body: secret.Text()}
}

func (l Log) Secret() ([]byte, error) {
	secret, err := leadership.ParseKey(l.Body)
	if err != nil {
		return nil, &leadership.Error{Code: leadership.RecordCorrupt, Detail: "the shared secret of the store cannot be read: it is not 32 bytes in base64url"}
	}
	return secret[:], nil
}
