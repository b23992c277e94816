package instance

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/instance/internal/hub"
	"regent/leadership/instance/internal/line"
	"regent/leadership/instance/internal/outbox"
	"regent/leadership/instance/internal/renewals"
	"regent/leadership/instance/internal/view"
	"regent/leadership/service"
)

// Bus carries events between the instances on one store. A *pubsub.Bus is one.
type Bus interface {
	outbox.Topic
	// Run hears what was announced until ctx ends, and reports whether it hears all of it.
	Run(ctx context.Context, hear func(leadership.Event), live func(bool)) error
}

// Config says how to make an Instance. Store is required.
type Config struct {
	Store service.Store
	// Journal keeps checkpoints and journals, in the same place as Store; nil for none: then calls
	// about them are refused with InvalidArgument.
	Journal service.Journal
	// Peers are other services, whose leases a candidate may name; nil for none.
	Peers service.Peers
	// Floor is that of the store; see store.Floor.
	Floor service.Floor
	// Name is a candidate id that no other instance has.
	Name string
	// Bus carries the events of other instances; nil for none.
	Bus Bus
	// Members carries what the instances know of members; nil for none: then each knows its own.
	Members MemberBus
	// Alone says that no other process changes the store, so that nothing is missed without a Bus.
	// Otherwise, without one, an instance looks for itself from time to time.
	Alone bool
	// CacheExpiry is how old a cached read may be: MaxCacheExpiry at most, 0 for
	// DefaultCacheExpiry.
	CacheExpiry time.Duration
	// Now is a clock that never goes back, that cannot be set, and that runs while the machine is
	// suspended; nil for boottime.Now.
	Now func() time.Duration
	// Log gets errors of background work. Nil logs nothing.
	Log *slog.Logger
}

// CacheReads counts the reads that were not strong: answered from memory, by a read of the store,
// and by a read that another caller had begun.
func (i *Instance) CacheReads() (hits, misses, shared int64) { return i.hub.Reads() }

// What an Instance has as it is: List, Events and Overrides of a service.Service, which read the
// store, and most of a Ledger.
type (
	asks  = Protocol
	keeps = Ledger
)

// Instance serves. It has the methods of service.Service, and more; all may be called at the
// same time. Without Run it decides and reads, and nothing happens by itself.
type Instance struct {
	asks    // the service, as a whole
	keeps   // the ledger, so, too
	service *service.Service
	ledger  *service.Ledger
	journal bool // there is one
	hub     *hub.Hub
	queue   *line.Queue
	outbox  *outbox.Outbox // nil without a bus
	roll    *roll
	bus     Bus
	number  uint32 // drawn, to tell its bids from those of other instances
	alone   bool
	deaf    atomic.Bool // the bus may miss events

	journals  *journals
	proposals *proposals
	census    censusPages

	storeTime atomic.Pointer[time.Time] // a time that the store has said
	load      load
	log       *slog.Logger
	now       func() time.Duration
}

// New returns an instance. The caller closes the store, after Run has returned. The error names an
// invalid part of the Config.
func New(c Config) (*Instance, error) {
	if c.Now == nil {
		c.Now = boottime.Now
	}
	i := &Instance{number: rand.Uint32(), bus: c.Bus, alone: c.Alone, log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)), now: c.Now}
	i.service = service.New(gathered(c), publisher{i}).WithPeers(c.Peers).WithFloor(c.Floor)
	i.journal = c.Journal != nil
	i.ledger = service.NewLedger(i.service, c.Journal)
	i.asks, i.keeps = i.service, i.ledger
	var err error
	i.hub, err = hub.New(hub.Config{Store: i.service, Live: c.Alone, Expiry: c.CacheExpiry, Now: c.Now, Log: c.Log})
	if err != nil {
		return nil, err
	}
	i.census.list, i.census.drained = i.service.CensusPage, i.hub.Cause
	i.queue = line.NewQueue(line.Config{
		Acquire: i.acquire, Do: i.Do, Instance: i.number, Present: i.present, Hub: i.hub, Jitter: jitter(c.Alone),
	})
	i.roll = newRoll(c, i.hub, i.queue, i.log)
	i.journals = newJournals(i.ledger, i.hub, i.roll.hears, i.log)
	i.proposals = newProposals(i.ledger, i.hub, i.roll, i.log)
	if c.Bus != nil {
		i.deaf.Store(true)
		i.outbox = outbox.New(outbox.Config{Store: c.Store, Topic: c.Bus, Found: i.hub.Publish, Clock: c.Now, Log: c.Log})
	}
	return i, nil
}

// gathered is the store that the service renews in. A store of one process has better ways to do
// many renewals at once.
func gathered(c Config) service.Store {
	if c.Alone {
		return c.Store
	}
	return renewals.New(c.Store)
}

// jitter keeps the heads of different instances apart. One that is alone needs none.
func jitter(alone bool) func(time.Duration) time.Duration {
	if alone {
		return func(time.Duration) time.Duration { return 0 }
	}
	return nil
}

// errStopped answers callers that still wait when Run ends.
var errStopped = fmt.Errorf("instance: %w: it has stopped", leadership.StoreUnavailable)

// grace is how long calls under way may take once Run is to end.
const grace = 2 * time.Second

// Run does the background work until ctx ends; then it finishes the work under way, for two seconds
// at most. Call Drain first, to tell waiting callers why they have to go.
func (i *Instance) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { i.hub.Run(ctx) })
	all.Go(func() { i.roll.run(ctx) })
	if i.alone { // no scheduler has to wake it
		all.Go(func() { i.note(i.service.TellAll(ctx)) })
	}
	if bus := i.roll.bus; bus != nil {
		all.Go(func() { i.note(bus.Run(ctx, i.roll.hear, i.roll.setLive)) })
	}
	if i.bus != nil {
		all.Go(func() { i.note(i.outbox.Run(ctx)) })
		all.Go(func() { i.note(i.bus.Run(ctx, i.heard, i.setLive)) })
	}
	all.Go(func() {
		<-ctx.Done()
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		i.Drain(late, errStopped)
	})
	all.Wait()
	i.hub.WaitReads()
	i.journals.running.Wait()
	i.proposals.running.Wait()
}

// note logs work that could not be finished at the end.
func (i *Instance) note(err error) {
	if err != nil {
		i.log.Warn("something was left undone", "cause", err)
	}
}

// Drain ends all waits, lines and watches, now and later, and answers their callers with the cause,
// except a caller that is being granted a lease at that moment. It returns once all are answered,
// or when ctx ends.
func (i *Instance) Drain(ctx context.Context, cause error) {
	i.hub.Close(cause)
	i.queue.Close(ctx, cause)
}

// Degraded describes what does not work as it should; "" if all does.
func (i *Instance) Degraded() string {
	var all []string
	for _, t := range i.Troubles() {
		all = append(all, i.describe(t))
	}
	return strings.Join(all, "; ")
}

// Trouble is something that does not work as it should, by its name in metrics. Nothing is lost,
// and all calls are answered.
type Trouble string

// The troubles. Several may come together.
const (
	// CannotAnnounce: what this instance commits does not reach the topic, or it cannot look for
	// what others have left behind.
	CannotAnnounce Trouble = "cannot_announce"
	// CannotHear: what other instances announce does not reach this one.
	CannotHear Trouble = "cannot_hear"
	// OthersCannotAnnounce: events that another instance committed stood in the outbox when this
	// one looked, for longer than an announcement takes.
	OthersCannotAnnounce Trouble = "others_cannot_announce"
	// CannotHearMembers: what other instances tell of their members does not reach this one.
	CannotHearMembers Trouble = "cannot_hear_members"
)

// Troubles returns all that there are.
func Troubles() []Trouble {
	return []Trouble{CannotAnnounce, CannotHear, OthersCannotAnnounce, CannotHearMembers}
}

// Troubles returns what does not work now.
func (i *Instance) Troubles() (all []Trouble) {
	if i.outbox != nil && i.outbox.CannotAnnounce() != nil {
		all = append(all, CannotAnnounce)
	}
	if i.deaf.Load() {
		all = append(all, CannotHear)
	}
	if i.outbox != nil && i.outbox.OthersLeave() && !i.alone { // of one that is alone it was an earlier process
		all = append(all, OthersCannotAnnounce)
	}
	if i.roll.deaf() && !i.alone {
		all = append(all, CannotHearMembers)
	}
	return all
}

// describe says what a trouble means for callers.
func (i *Instance) describe(t Trouble) string {
	switch {
	case t == CannotHearMembers:
		return "other instances tell nothing of their members: those that are known are the ones of this instance, and a quorum that counts on others is lost"
	case t == CannotAnnounce && i.alone:
		return "events cannot be announced: what changes here is announced later"
	case t == CannotAnnounce:
		return "this instance cannot announce events: what changes here is seen at other instances within 20 s, and announced by another within 32 s"
	case t == OthersCannotAnnounce:
		return "another instance cannot announce events, or has died: what it leaves behind is seen here within 20 s, and announced from here within 32 s"
	case i.alone:
		return "the topic of events is out of reach: what changes here is announced later"
	}
	return "events of other instances do not arrive: changes that they make are seen later, within the bound that cached reads state"
}

// setLive sets whether the bus delivers every event. An instance that is alone misses nothing.
func (i *Instance) setLive(live bool) {
	i.deaf.Store(!live)
	if !i.alone {
		i.hub.SetLive(live)
	}
	if live {
		i.outbox.Reached()
	}
}

// publisher gets the events that this instance commits.
type publisher struct{ *Instance }

func (p publisher) Publish(events ...leadership.Event) {
	p.hub.Publish(events...)
	if p.outbox != nil {
		p.outbox.Publish(events...)
	}
}

// Doubt is called with an election of which an event may never come to Publish.
func (p publisher) Doubt(e leadership.Election) { p.hub.Doubt(e) }

// heard takes an event that was announced, by this instance or another.
func (i *Instance) heard(e leadership.Event) {
	i.outbox.Heard(e)
	i.hub.Publish(e)
}

// learn remembers the lease that a call of this instance has just been answered with, and when the
// call began. After the end of one that a caller was answered with which does not lead, view.Read,
// this instance does not look.
func (i *Instance) learn(l *leadership.Lease, err error, from view.Source, asked time.Duration) {
	if err == nil {
		i.hub.Learn(l, from, asked)
	}
}
