package authn

import (
	"context"
	"crypto"
	"log/slog"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/wire"
)

const (
	maxKeyAge = 24 * time.Hour // how long keys serve when their issuer does not answer
	lookEvery = time.Minute    // callers with unknown keys cause at most one look in this time
	maxWait   = 5 * time.Second
	firstWait = time.Second // after a look that failed; doubled each time, up to lookEvery
)

// publicKey is a key of any kind. All public keys of the standard library implement it.
type publicKey interface {
	Equal(crypto.PublicKey) bool
}

type keys struct {
	byID  map[string]publicKey
	lasts time.Duration // how long until they should be read again
}

// keyring has the keys of one issuer. Only run talks to the issuer; a caller that needs a key waits
// for it, but not for long.
type keyring struct {
	issuer string
	read   func(context.Context) (keys, error)
	now    func() time.Time
	log    *slog.Logger
	wake   chan struct{} // capacity 1

	mu      sync.Mutex // guards the fields below
	keys    keys
	at      time.Time     // when the look that found the keys began
	looking chan struct{} // closed at the end of the look in progress or requested; else nil
	looked  time.Time     // when the last look ended
	failed  int           // number of failed looks since the last successful one
}

func newKeyring(issuer string, read func(context.Context) (keys, error), now func() time.Time, log *slog.Logger) *keyring {
	return &keyring{
		issuer: issuer, read: read, now: now, log: log,
		wake:    make(chan struct{}, 1),
		looking: make(chan struct{}), // run begins with one
	}
}

// run keeps the keys fresh until ctx ends.
func (k *keyring) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := k.look(ctx)
		select {
		case <-ctx.Done():
		case <-k.wake:
		case <-time.After(pause):
		}
	}
}

// look asks the issuer once and returns when to ask again.
func (k *keyring) look(ctx context.Context) (pause time.Duration) {
	begun := k.begin()
	fresh, err := k.read(ctx)
	if err != nil && ctx.Err() == nil {
		k.log.Warn("identity: cannot read the keys of an issuer", "issuer", k.issuer, "cause", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.looking)
	k.looking, k.looked = nil, k.now()
	if err != nil {
		k.failed++
		return min(firstWait<<min(k.failed-1, 10), lookEvery)
	}
	k.keys, k.at, k.failed = fresh, begun, 0
	return fresh.lasts * 4 / 5
}

func (k *keyring) begin() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.wake: // this look answers the caller that asked
	default:
	}
	if k.looking == nil {
		k.looking = make(chan struct{})
	}
	return k.now()
}

// key returns the key with that id. If it is unknown, key waits for the look in progress, or starts
// one unless the last was within a minute. It returns when ctx ends, or after maxWait.
func (k *keyring) key(ctx context.Context, id string) (publicKey, error) {
	key, looking := k.find(id)
	if key == nil && looking != nil {
		ctx, cancel := context.WithTimeout(ctx, maxWait)
		defer cancel()
		select {
		case <-looking:
			key = k.current(id)
		case <-ctx.Done():
			return nil, errNoKeys()
		}
	}
	if key == nil {
		return nil, k.refusal()
	}
	return key, nil
}

// find returns the key, or the look that may find it, or neither.
func (k *keyring) find(id string) (publicKey, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if key := k.lookUp(id); key != nil {
		return key, nil
	}
	if k.looking == nil && k.now().Sub(k.looked) >= lookEvery {
		k.looking = make(chan struct{})
		k.wake <- struct{}{} // does not block: begin has emptied it, and each look is requested once
	}
	return nil, k.looking
}

// current returns the key if the last successful look found it, else nil.
func (k *keyring) current(id string) publicKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lookUp(id)
}

// lookUp is current with mu held.
func (k *keyring) lookUp(id string) publicKey {
	if k.tooOld() {
		return nil
	}
	return k.keys.byID[id]
}

func (k *keyring) tooOld() bool { return k.keys.byID == nil || k.now().Sub(k.at) >= maxKeyAge }

// refusal returns why there is no key. It blames the token only if the last look succeeded.
func (k *keyring) refusal() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tooOld() || k.failed > 0 {
		return errNoKeys()
	}
	return &leadership.Error{
		Code: wire.Unauthenticated, RetryAfter: max(lookEvery-k.now().Sub(k.looked), firstWait),
		Detail: "the token's issuer does not know the key of the token; get a new one, or try again if the issuer has just changed its keys",
	}
}

func errNoKeys() error {
	return &leadership.Error{
		Code: leadership.StoreUnavailable, RetryAfter: firstWait,
		Detail: "the keys of the token's issuer cannot be read at the moment, and nothing was done; try again, a leader until its own deadline",
	}
}
