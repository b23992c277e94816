package counts

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"google.golang.org/grpc"

	"regent/emulators"
	"regent/leadership"
	"regent/leadership/service"
	"regent/store/firestore"
	"regent/store/spanner"
)

// Place is a database of its own on an emulator.
type Place struct {
	kind emulators.Kind
	host string // of the emulator
	id   string
}

// NewPlace prepares an empty database. The emulator is Firestore's or Spanner's, at host:port.
func NewPlace(ctx context.Context, kind emulators.Kind, host string) (Place, error) {
	p := Place{kind: kind, host: host, id: "cost-" + strings.ToLower(rand.Text()[:12])}
	if kind == emulators.KindSpanner {
		return p, spanner.Migrate(ctx, p.spanner(nil))
	}
	return p, nil
}

// keeper stores elections, and the logs of their leaders.
type keeper interface {
	service.Store
	service.Journal
}

// Handle is a store whose calls are counted.
type Handle struct {
	keeper
	*Tally
}

// Open returns one more handle on the database, for the caller to close. The calls that open it are
// not counted: they happen once in the life of a process.
func (p Place) Open(ctx context.Context) (Handle, error) {
	tally := new(Tally)
	s, err := p.open(ctx, []grpc.DialOption{grpc.WithStatsHandler(tally)})
	if err != nil {
		return Handle{}, err
	}
	if _, err := s.Get(ctx, "warm"); err != nil {
		s.Close()
		return Handle{}, fmt.Errorf("the first read: %w", err)
	}
	if err := p.warm(ctx, service.New(s)); err != nil {
		s.Close()
		return Handle{}, fmt.Errorf("the first grant: %w", err)
	}
	tally.Take()
	return Handle{keeper: s, Tally: tally}, nil
}

// warm lets a store that gives tickets read their secret, or make it. On a busy machine it gives
// the first leases without.
func (p Place) warm(ctx context.Context, service *service.Service) error {
	for p.kind == emulators.KindFirestore {
		a := newAgent("warm")
		g, err := service.Acquire(ctx, a.ask("warm"))
		if err != nil {
			return err
		}
		if _, err := service.Do(ctx, leadership.Release{LeaseRequest: a.lease("warm", g.Token)}); err != nil || g.Ticket != "" {
			return err
		}
	}
	return nil
}

func (p Place) open(ctx context.Context, options []grpc.DialOption) (keeper, error) {
	if p.kind == emulators.KindSpanner {
		return spanner.Open(ctx, p.spanner(options))
	}
	return firestore.Open(ctx, firestore.Config{Project: p.id, Emulator: p.host, DialOptions: options})
}

func (p Place) spanner(options []grpc.DialOption) spanner.Config {
	return spanner.Config{Database: fmt.Sprintf("projects/%s/instances/test/databases/regent", p.id), EmulatorHost: p.host, DialOptions: options}
}
