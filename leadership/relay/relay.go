package relay

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/failpoint"
)

// Election is the one that relays stand in. It is reserved: whoever else led it would keep them from relaying.
const Election leadership.Election = "regent.relay"

// Topic is where events are announced.
type Topic interface {
	// Publish announces events of one election in order, and waits until they are acknowledged. acked says how many at the front were; unless
	// it is all, err says why. An event may have been accepted though it was not acknowledged, and may be accepted even after the call has
	// returned, but none is accepted before those in front of it. After an error the next call tries anew. It honours ctx.
	//
	// It may be called from several goroutines, but by one Relay not for the same election at the same time.
	Publish(ctx context.Context, events []leadership.Event) (acked int, err error)
}

// Store is what a Relay needs of a leadership.Store.
type Store interface {
	Unannounced(ctx context.Context, e leadership.Election, limit int) ([]leadership.Event, error)
	MarkAnnounced(ctx context.Context, ids []leadership.EventID) error
}

// Service is what a Relay needs of a leadership.Service, to stand in its own election.
type Service interface {
	Acquire(context.Context, leadership.AcquireRequest) (leadership.Grant, error)
	Renew(context.Context, leadership.LeaseRequest) (leadership.Lease, error)
	Release(context.Context, leadership.LeaseRequest) (leadership.Lease, error)
}

// Config is how a Relay is made. The first four are required.
type Config struct {
	Store Store
	// Service tells the Relay of what it commits, as every Service on the same store does: the events of Election are events like any other.
	Service  Service
	Topic    Topic
	Instance leadership.CandidateID // of this process, in Election
	// Log is told what goes wrong. nil: nobody is.
	Log *slog.Logger
	// Interval is between two looks for what was left behind, a quarter more or less: 15 s if it is zero.
	Interval time.Duration
	// Clock must not go back, nor stop while the machine is suspended. nil: boottime.Now.
	Clock func() time.Duration
}

// Limits of a Relay.
const (
	parallel       = 64               // elections that are published at the same time, by the announcer and by the relay each
	maxPublish     = 100              // events in one call of the topic
	publishTimeout = 10 * time.Second // of one such call
	storeTimeout   = 10 * time.Second // of one call of the store
	grace          = 2 * time.Second  // for what is under way when Run is to end
)

// Relay announces the events of one store on one topic. Its methods may be called at the same time.
type Relay struct {
	store    Store
	service  Service
	topic    Topic
	instance leadership.CandidateID
	log      *slog.Logger
	interval time.Duration
	clock    func() time.Duration

	known known
	turns turns
	pause pause
	queue queue
	marks marks
	seen  sightings
	key   leadership.Key // for the next lease; Run's own
	wake  chan struct{}  // of one: this process has left something behind
}

// New returns a relay, which does nothing before Run.
func New(c Config) *Relay {
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	clock := c.Clock
	if clock == nil {
		clock = boottime.Now
	}
	return &Relay{
		store:    c.Store,
		service:  c.Service,
		topic:    c.Topic,
		instance: c.Instance,
		log:      log,
		interval: cmp.Or(c.Interval, 15*time.Second),
		clock:    clock,
		known:    known{elections: make(map[leadership.Election]reach)},
		turns:    turns{taken: make(map[leadership.Election]*turn)},
		queue:    queue{lines: make(map[leadership.Election]*line), wake: make(chan struct{}, 1)},
		marks:    marks{wake: make(chan struct{}, 1), closed: make(chan struct{})},
		key:      leadership.NewKey(),
		wake:     make(chan struct{}, 1),
	}
}

// Publish implements leadership.Publisher: the events are announced soon. It does not block. What cannot be announced, because the topic has
// just failed, too much waits already, or Run has ended, is left behind in the outbox.
func (r *Relay) Publish(events ...leadership.Event) {
	failpoint.Hit("relay:committed")
	if !r.queue.put(events) {
		r.leave("the announcer takes no more")
	}
}

// Heard says that an event came out of the topic, whoever had announced it.
func (r *Relay) Heard(e leadership.Event) { r.known.heard(e.ID()) }

// leave says that events were left behind which are not to wait for the next look.
func (r *Relay) leave(why string, attrs ...any) {
	if signal(r.wake) {
		r.log.Warn("relay: events are left behind: "+why, attrs...)
	}
}

// Run announces and relays until ctx ends, once in the life of a Relay. Then it gives its lease back, publishes what still waits and
// marks what was acknowledged, all of that within 2 s. An error says that this was not enough; what is missing stands in the outbox.
func (r *Relay) Run(ctx context.Context) error {
	late, cancel := lingering(ctx, grace)
	defer cancel()
	var announcing, marking sync.WaitGroup
	marking.Go(func() { r.keepMarking(late) })
	announcing.Go(func() { r.keepAnnouncing(late) })
	r.keepLooking(ctx)
	r.queue.close()
	announcing.Wait()
	close(r.marks.closed)
	marking.Wait()
	if late.Err() != nil {
		return fmt.Errorf("relay: what was to be announced and marked took longer than %v; another instance will do it", grace)
	}
	return nil
}
