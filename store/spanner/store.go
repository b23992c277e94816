package spanner

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	vkit "cloud.google.com/go/spanner/apiv1"
	"github.com/googleapis/gax-go/v2"

	"regent/leadership"
	"regent/leadership/rule"
	"regent/leadership/service"
	"regent/store/internal/calls"
	"regent/store/internal/history"
)

// Guard is how long after a lease's end no other lease is granted. CURRENT_TIMESTAMP() is the clock
// of the server that runs the query, and a commit timestamp comes from TrueTime; the servers differ
// by some milliseconds (published: 1 to 7, generally under 10). Only a clock that runs ahead can do
// harm, by no more than that. 50 ms leaves room.
const Guard = 50 * time.Millisecond

// Store is a service.Store, and a service.Journal, on Cloud Spanner.
type Store struct {
	client   *spanner.Client
	timeout  time.Duration
	patience time.Duration // how long a renewal of several leases may take before it is divided; 0: no limit
	history  history.Span
	codec    rule.Codec
	turns    turns
	looks    looks
	calls    calls.Gate
}

var _ service.Store = (*Store)(nil)

// Open connects to the database and checks its schema version. It creates nothing: Migrate does. An
// error says what to do.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	span, err := history.Of(cfg.History)
	if err != nil {
		return nil, fmt.Errorf("spanner: %w", err)
	}
	client, err := cfg.dial(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.callTimeout())
	defer cancel()
	at, err := checkSchema(ctx, client, cfg.Database)
	if err != nil {
		client.Close()
		return nil, err
	}
	s := &Store{client: client, timeout: cfg.callTimeout(), history: span, codec: cfg.Codec, looks: looks{since: at.Add(-history.Slack)}}
	if cfg.emulatorHost() != "" {
		s.turns = make(turns, 1)
	} else {
		s.patience = cfg.patience() // an emulator has no locks on rows, and is slow for reasons of its own
	}
	return s, nil
}

// rollbackTimeout limits the client's rollback, which runs without the caller's context. Spanner
// releases remaining locks by itself, after ten idle seconds.
const rollbackTimeout = time.Second

// dial makes a client; it does not wait for a connection.
func (c Config) dial(ctx context.Context) (*spanner.Client, error) {
	if _, err := c.name(); err != nil {
		return nil, err
	}
	client, err := spanner.NewClientWithConfig(ctx, c.Database, spanner.ClientConfig{
		DisableNativeMetrics: c.emulatorHost() != "",
		CallOptions:          &vkit.CallOptions{Rollback: []gax.CallOption{gax.WithTimeout(rollbackTimeout)}},
	}, c.options()...)
	if err != nil {
		return nil, fmt.Errorf("spanner: %s: %w", c.Database, err)
	}
	return client, nil
}

// Close waits for the calls in progress, each of which ends within its timeout, and releases the
// connections. Later calls fail with StoreUnavailable.
func (s *Store) Close() error {
	if s.calls.Close() {
		s.client.Close()
	}
	return nil
}

// begin starts a call; done ends it. The error carries StoreUnavailable.
func (s *Store) begin(ctx context.Context) (_ context.Context, done func(), _ error) {
	if err := s.calls.Enter(); err != nil {
		return nil, nil, fmt.Errorf("spanner: %w: %w", leadership.StoreUnavailable, err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	return ctx, func() { cancel(); s.calls.Leave() }, nil
}
