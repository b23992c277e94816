package firestore

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	apiv1 "cloud.google.com/go/firestore/apiv1"
	lru "github.com/hashicorp/golang-lru/v2"
	"google.golang.org/grpc"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/internal/calls"
	"regent/store/internal/history"
)

// guard is how long after a lease's end the store waits before it grants the next one. The times of
// reads and of commits come from different servers of Firestore. Google promises no bound on their
// difference, and 50 ms is several times the error that it publishes for its clocks. Only a read
// time that is ahead of the commit time it is compared with can do harm.
const guard = 50 * time.Millisecond

// rpcTimeout limits each call to Firestore, so that a dead connection is noticed while the lease to
// be renewed still runs: by default a lease has 20 s left when its first renewal is sent.
const rpcTimeout = 10 * time.Second

// Config says which database to use. Project is required; the rest may be left out.
type Config struct {
	Project  string // the Google Cloud project's id
	Database string // "" for "(default)"

	// History is how long events are kept: rule.MinHistory or more, 0 for rule.DefaultHistory. It
	// applies to events written from now on. If it was shorter before, or is shorter in another
	// process, Since may lack events that were written with the shorter one.
	History time.Duration

	// Emulator is the host:port of a Firestore emulator to use instead of Firestore; "" for
	// FIRESTORE_EMULATOR_HOST, if that is set.
	Emulator string

	// Codec reads and writes policy and standing; the zero Codec is this program's.
	Codec rule.Codec

	// DialOptions are added when the connection is made, also to an emulator: a stats handler,
	// interceptors.
	DialOptions []grpc.DialOption
}

func (c Config) database() (database, error) {
	if c.Project == "" || strings.Contains(c.Project, "/") {
		return "", fmt.Errorf("firestore: %q is not a project id", c.Project)
	}
	name := cmp.Or(c.Database, "(default)")
	if strings.Contains(name, "/") {
		return "", fmt.Errorf("firestore: %q is not a database id", name)
	}
	return database("projects/" + c.Project + "/databases/" + name), nil
}

// Store is a service.Store, and a service.Journal, on a Firestore database. It may be used
// from many goroutines.
type Store struct {
	client   *apiv1.Client
	emulated bool
	database database
	history  history.Span
	codec    rule.Codec
	memory   *memory
	heads    *heads
	trimmed  *lru.Cache[rule.LogID, leadership.Index] // the index up to which this handle has trimmed the log
	sealer   sealer
	looks    outboxLooks
	requests requests
	calls    calls.Gate
}

var _ service.Store = (*Store)(nil)

// Open returns a handle on the database. It sends nothing yet: if the database does not exist, or
// access is denied, the first call returns StoreUnavailable. It uses the application default
// credentials, except with an emulator. ctx is only for finding the credentials.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	db, err := cfg.database()
	if err != nil {
		return nil, err
	}
	span, err := history.Of(cfg.History)
	if err != nil {
		return nil, fmt.Errorf("firestore: %w", err)
	}
	emulator := cmp.Or(cfg.Emulator, os.Getenv("FIRESTORE_EMULATOR_HOST"))
	client, err := dial(ctx, db, emulator, cfg.DialOptions)
	if err != nil {
		return nil, fmt.Errorf("firestore: open %s: %w", db, err)
	}
	trimmed, err := lru.New[rule.LogID, leadership.Index](headsSize)
	if err != nil {
		panic(err) // the size is below 1
	}
	return &Store{
		client: client, emulated: emulator != "", database: db, history: span, codec: cfg.Codec,
		memory: newMemory(memorySize), heads: newHeads(headsSize, headsBytes), trimmed: trimmed,
	}, nil
}

// Close waits for the calls in progress and closes the connection. Later calls get
// StoreUnavailable.
func (s *Store) Close() error {
	if !s.calls.Close() {
		return nil
	}
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("firestore: close: %w", err)
	}
	return nil
}

// begin begins a call, unless its context has ended or the store is closed.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.calls.Enter()
}
