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
	// Run passes announced events to hear until ctx ends, and reports by live whether it hears all
	// of them.
	Run(ctx context.Context, hear func(leadership.Event), live func(bool)) error
}

// Config says how to make an Instance. Store is required, and Journal for calls that need one.
type Config struct {
	Store service.Store
	// Journal keeps checkpoints, journals, effects and proposals, in the same place as Store.
	Journal service.Journal
	// Peers are other services whose leases a candidate may name; nil for none.
	Peers service.Peers
	// Floor is that of the store; see store.Floor.
	Floor service.Floor
	// Name is a candidate id that no other instance has.
	Name string
	// Bus carries the events of other instances; nil for none.
	Bus Bus
	// Members carries the sheets of members between instances. If it is nil, each instance knows
	// only its own members.
	Members MemberBus
	// Alone says that no other process changes the store, so that nothing is missed without a Bus.
	// An instance that has no Bus and is not alone polls the store.
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

// The calls that an Instance passes on unchanged: List, Events and Overrides of a service.Service,
// which read the store, and most of a Ledger.
type (
	asks  = Protocol
	keeps = Ledger
)

// Instance is one serving process. It has the methods of service.Service, and more; all may be
// called concurrently. Without Run it answers calls, but does no background work.
type Instance struct {
	asks    // the service
	keeps   // the ledger
	service *service.Service
	ledger  *service.Ledger
	hub     *hub.Hub
	queue   *line.Queue
	outbox  *outbox.Outbox // nil without a bus
	roll    *roll
	bus     Bus
	number  uint32 // random, to tell its bids from those of other instances
	alone   bool
	deaf    atomic.Bool // the bus may miss events

	journals  *journals
	proposals *proposals
	census    censusPages

	storeTime atomic.Pointer[time.Time] // the last known time of the store's clock
	load      load
	log       *slog.Logger
	now       func() time.Duration
}

// New returns an instance. The caller must close the store after Run has returned. The error names
// an invalid part of the Config.
func New(c Config) (*Instance, error) {
	if c.Now == nil {
		c.Now = boottime.Now
	}
	i := &Instance{number: rand.Uint32(), bus: c.Bus, alone: c.Alone, log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)), now: c.Now}
	i.service = service.New(gathered(c), publisher{i}).WithPeers(c.Peers).WithFloor(c.Floor)
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

// gathered returns the store through which the service renews: it sends renewals together, unless
// the instance is alone, because a store of one process batches them better by itself.
func gathered(c Config) service.Store {
	if c.Alone {
		return c.Store
	}
	return renewals.New(c.Store)
}

// jitter returns random delays that keep the attempts of different instances apart. An instance
// that is alone needs none.
func jitter(alone bool) func(time.Duration) time.Duration {
	if alone {
		return func(time.Duration) time.Duration { return 0 }
	}
	return nil
}

// errStopped is the error of callers that still wait when Run ends.
var errStopped = fmt.Errorf("instance: %w: it has stopped", leadership.StoreUnavailable)

// grace is how long calls in progress may take once the ctx of Run has ended.
const grace = 2 * time.Second

// Run does the background work until ctx ends; then it finishes the work in progress, for at most
// two seconds. Call Drain first, to give waiting callers a reason.
func (i *Instance) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { i.hub.Run(ctx) })
	all.Go(func() { i.roll.run(ctx) })
	if i.alone { // so that it needs no scheduler that calls Tick
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

// Drain ends all waits, lines and watches, present and future, and answers their callers with the
// cause, except a caller that is being granted a lease at that moment. It returns once all are
// answered, or when ctx ends.
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

// Trouble names a part that does not work as it should, as in metrics. Nothing is lost, and all
// calls are answered.
type Trouble string

// The troubles. Several may come together.
const (
	// CannotAnnounce: the events that this instance commits do not reach the topic, or it cannot
	// read the outbox for events that others have left.
	CannotAnnounce Trouble = "cannot_announce"
	// CannotHear: the events that other instances announce do not reach this one.
	CannotHear Trouble = "cannot_hear"
	// OthersCannotAnnounce: events that another instance committed have been in the outbox for
	// longer than an announcement takes.
	OthersCannotAnnounce Trouble = "others_cannot_announce"
	// CannotHearMembers: the sheets of other instances' members do not reach this one.
	CannotHearMembers Trouble = "cannot_hear_members"
)

// Troubles returns all kinds of Trouble.
func Troubles() []Trouble {
	return []Trouble{CannotAnnounce, CannotHear, OthersCannotAnnounce, CannotHearMembers}
}

// Troubles returns the present troubles.
func (i *Instance) Troubles() (all []Trouble) {
	if i.outbox != nil && i.outbox.CannotAnnounce() != nil {
		all = append(all, CannotAnnounce)
	}
	if i.deaf.Load() {
		all = append(all, CannotHear)
	}
	if i.outbox != nil && i.outbox.OthersLeave() && !i.alone { // if it is alone, an earlier process left them
		all = append(all, OthersCannotAnnounce)
	}
	if i.roll.deaf() && !i.alone {
		all = append(all, CannotHearMembers)
	}
	return all
}

// describe returns the meaning of a trouble for callers.
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

// Doubt is called with an election that has perhaps changed without a call of Publish.
func (p publisher) Doubt(e leadership.Election) { p.hub.Doubt(e) }

// heard handles an event that was announced, by this instance or another.
func (i *Instance) heard(e leadership.Event) {
	i.outbox.Heard(e)
	i.hub.Publish(e)
}

// learn remembers the lease in the store's answer to a call that began at asked. With view.Read,
// the source if the caller does not lead, this instance does not look after the end of the lease.
func (i *Instance) learn(l *leadership.Lease, err error, from view.Source, asked time.Duration) {
	if err == nil {
		i.hub.Learn(l, from, asked)
	}
}
