package firestore

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"sync"
	"time"

	"regent/leadership"
)

// The secret that seals tickets is a document of its own. The first handle that needs it creates
// it; the first that finds it older than secretAge replaces it, and the previous key still opens
// tickets. Without the secret no ticket is given or accepted, and nothing else fails. To replace it
// at once, delete the document: all tickets are then invalid within refreshAfter, and cost a read
// each.
//
// A principal that can read the document can forge tickets, and with them keep a lease alive. As
// with the records themselves, only Regent may read it.
const (
	secretSchema   = 1
	secretKeyField = "key"      // 32 bytes
	formerField    = "previous" // 32 bytes; empty in the first
	createdField   = "createdAt"

	secretBytes = 32
	secretAge   = 7 * 24 * time.Hour
)

// When a handle reads the secret again, by the store's time.
const (
	refreshAfter = time.Hour
	retryAfter   = time.Minute // while the secret is unknown, or does not open a ticket
	// secretPatience is how long calls wait for a read of the secret while it is unknown.
	secretPatience = time.Second
)

type sealKey struct {
	raw  []byte
	id   [4]byte // of the ticket's key, in the ticket
	aead cipher.AEAD
}

func newSealKey(raw []byte) (sealKey, error) {
	if len(raw) != secretBytes {
		return sealKey{}, fmt.Errorf("a key of %d bytes", len(raw))
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return sealKey{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return sealKey{}, err
	}
	k := sealKey{raw: raw, aead: aead}
	id := sha256.Sum256(append([]byte("regent ticket key "), raw...))
	copy(k.id[:], id[:])
	return k, nil
}

// keyring has the keys of the secret; the zero keyring has none.
type keyring struct{ newest, previous sealKey }

func (k keyring) known() bool { return k.newest.aead != nil }

// ticketForm is the first byte of a ticket. It changes when recordSchema or ticketFields do.
const ticketForm = 1

// header returns the unencrypted beginning of a ticket.
func (k sealKey) header() []byte { return append([]byte{ticketForm}, k.id[:]...) }

// bound returns the additional data that a ticket is sealed with.
func (k sealKey) bound(db database) []byte { return append(k.header(), db...) }

var encoding = base64.RawURLEncoding.Strict()

// seal returns the text as a ticket of the database.
func (k sealKey) seal(db database, plain []byte) leadership.Ticket {
	return leadership.Ticket(encoding.EncodeToString(k.aead.Seal(k.header(), nil, plain, k.bound(db))))
}

// errUnknownKey says that a ticket was sealed with a key that this handle does not have.
var errUnknownKey = fmt.Errorf("%w, or its key is not known", errTicket)

// open is the inverse of seal.
func (k keyring) open(db database, t leadership.Ticket) ([]byte, error) {
	if len(t) > leadership.MaxTicketBytes {
		return nil, errTicket
	}
	sealed, err := encoding.DecodeString(string(t))
	if err != nil || encoding.EncodeToString(sealed) != string(t) { // decoding skips line breaks
		return nil, errTicket
	}
	for _, key := range []sealKey{k.newest, k.previous} {
		header := key.header()
		if key.aead != nil && len(sealed) >= len(header) && string(sealed[:len(header)]) == string(header) {
			return key.aead.Open(nil, nil, sealed[len(header):], key.bound(db))
		}
	}
	return nil, errUnknownKey
}

// sealer is a handle's knowledge of the secret.
type sealer struct {
	mu      sync.Mutex // guards all below
	keys    keyring
	tried   bool
	asked   time.Time       // the last known time of the store when the secret was last read
	reading context.Context // done when calls need no longer wait for the read in progress; nil if there is none
}

// due reports whether it is time to read the secret. missed says that the known keys did not open a
// ticket. Call with mu held.
func (s *sealer) due(now time.Time, missed bool) bool {
	wait := refreshAfter
	if missed || !s.keys.known() {
		wait = retryAfter
	}
	return s.reading == nil && (!s.tried || now.Sub(s.asked) >= wait)
}

// keys returns the keys that this handle knows. It starts a read of the secret if that is due, and
// waits for the read only if there are no keys yet.
func (s *Store) keys(ctx context.Context, missed bool) keyring {
	now := s.memory.now()
	t := &s.sealer
	t.mu.Lock()
	if t.due(now, missed) && s.calls.Enter() == nil {
		ctx := context.WithoutCancel(ctx)
		reading, enough := context.WithTimeout(ctx, secretPatience)
		t.tried, t.asked, t.reading = true, now, reading
		go s.readKeys(ctx, enough)
	}
	keys, reading := t.keys, t.reading
	t.mu.Unlock()
	if keys.known() || reading == nil {
		return keys
	}
	select {
	case <-reading.Done():
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.keys
}

// readKeys is the read of the secret that keys begins. It calls enough at its end.
func (s *Store) readKeys(ctx context.Context, enough func()) {
	defer s.calls.Leave()
	keys, at, err := s.secret(ctx)
	t := &s.sealer
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.keys, t.asked = keys, at
	}
	t.reading = nil
	enough()
}

// secret reads the secret, and creates or replaces it if that is due. It also returns the store's
// time of that.
func (s *Store) secret(ctx context.Context) (keys keyring, at time.Time, err error) {
	name := s.database.secret()
	for range 3 {
		found, err := s.batchGet(ctx, name)
		if err != nil {
			return keyring{}, time.Time{}, err
		}
		r := found[name]
		keys, created, err := decodeSecret(r)
		if err != nil || keys.known() && r.at.Sub(created) < secretAge {
			return keys, r.at, err
		}
		secret := make([]byte, secretBytes)
		rand.Read(secret) // never fails
		next, err := newSealKey(secret)
		if err != nil {
			return keyring{}, time.Time{}, err
		}
		previous := keys.newest
		_, err = s.commit(ctx, put(name, values{
			schemaField:    integer(secretSchema),
			secretKeyField: bytesValue(next.raw),
			formerField:    bytesValue(previous.raw),
			createdField:   instant(r.at),
		}, unchangedSince(r.updated())))
		switch {
		case err == nil:
			return keyring{newest: next, previous: previous}, r.at, nil
		case contended(err): // another handle was faster
		case keys.known():
			return keys, r.at, nil
		default:
			return keyring{}, time.Time{}, err
		}
	}
	return keyring{}, time.Time{}, errContention
}

// decodeSecret returns no keys if there is no document.
func decodeSecret(r reading) (keys keyring, created time.Time, err error) {
	if r.doc == nil {
		return keyring{}, time.Time{}, nil
	}
	f := readFields(r.doc.Fields)
	f.schema(secretSchema)
	newest, previous := f.bytes(secretKeyField), f.bytes(formerField)
	created = f.moment(createdField)
	if err := f.done(); err != nil {
		return keyring{}, time.Time{}, fmt.Errorf("firestore: the secret of tickets: %w", err)
	}
	keys.newest, err = newSealKey(newest)
	if len(previous) > 0 {
		var bad error
		keys.previous, bad = newSealKey(previous)
		err = cmp.Or(err, bad)
	}
	if err != nil {
		return keyring{}, time.Time{}, fmt.Errorf("firestore: the secret of tickets: %w", err)
	}
	return keys, created, nil
}
