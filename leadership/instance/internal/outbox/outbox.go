package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
	"regent/leadership/instance/internal/backoff"
	"regent/leadership/instance/internal/failpoint"
	"regent/leadership/rule"
)

// Topic is where events are announced.
type Topic interface {
	// Publish publishes up to 100 events of one election in order and waits for their
	// acknowledgement. acked is the number of events at the front that were acknowledged; err says
	// why it is not all of them. An event may be accepted without an acknowledgement, even after
	// the call has returned, but never before the events in front of it. A later call tries again.
	// Publish must honour ctx. An Outbox never makes two concurrent calls for one election.
	Publish(ctx context.Context, events []leadership.Event) (acked int, err error)
}

// Store is the part of a service.Store that an Outbox needs.
type Store interface {
	Unannounced(ctx context.Context, e leadership.Election, limit int) ([]leadership.Event, error)
	MarkAnnounced(ctx context.Context, ids []leadership.EventID) error
	Since(ctx context.Context, after time.Time, limit int) (rule.Recent, error)
	Get(ctx context.Context, e leadership.Election) (rule.Snapshot, error)
}

// Config is how an Outbox is made. Store and Topic are required.
type Config struct {
	Store Store
	Topic Topic
	// Found, if set, is called with the events that a look finds in the outbox, each usually once,
	// whether or not they can be announced. It must not block.
	Found func(events ...leadership.Event)
	// Log gets failures. Nil logs nothing.
	Log *slog.Logger
	// Clock must not go back, nor stop while the machine is suspended. Nil for boottime.Now.
	Clock func() time.Duration
}

// Limits of an Outbox.
const (
	parallel       = 64               // elections published at once, by announcer and sweep each
	maxPublish     = 100              // events in one call of the topic
	publishTimeout = 10 * time.Second // of one such call
	storeTimeout   = 10 * time.Second // of one call of the store
	maxLeft        = 10_000           // elections remembered as having events left in the outbox
	grace          = 2 * time.Second  // to finish the calls in progress when ctx ends
)

// Outbox announces the events of one store on one topic. Its methods may be called concurrently.
type Outbox struct {
	store Store
	topic Topic
	found func(...leadership.Event)
	log   *slog.Logger
	clock func() time.Duration

	known known
	queue queue
	marks chan []leadership.EventID // announced, to be marked
	seen  sightings
	left  leftovers
	reach contact
	again chan struct{} // of one: the topic may be in reach again
}

// New returns an Outbox, which announces nothing before Run.
func New(c Config) *Outbox {
	o := &Outbox{
		store: c.Store,
		topic: c.Topic,
		found: c.Found,
		log:   cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
		clock: c.Clock,
		known: known{elections: make(map[leadership.Election]reach)},
		queue: queue{lines: make(map[leadership.Election]*line), wake: make(chan struct{}, 1)},
		marks: make(chan []leadership.EventID, maxMarks),
		left:  leftovers{elections: make(map[leadership.Election]struct{}), wake: make(chan struct{}, 1)},
		again: make(chan struct{}, 1),
	}
	if o.found == nil {
		o.found = func(...leadership.Event) {}
	}
	if o.clock == nil {
		o.clock = boottime.Now
	}
	return o
}

// Run announces and sweeps until ctx ends; call it once. Then it publishes the waiting events and
// marks the acknowledged ones, within 2 s. It returns an error if that was too short: the rest
// stays in the outbox.
func (o *Outbox) Run(ctx context.Context) error {
	late, cancel := lingering(ctx)
	defer cancel()
	var announcing, marking sync.WaitGroup
	marking.Go(func() { o.keepMarking(late) })
	announcing.Go(func() { o.keepAnnouncing(late) })
	o.keepSweeping(ctx, late)
	o.queue.close()
	announcing.Wait()
	close(o.marks)
	marking.Wait()
	if late.Err() != nil {
		return fmt.Errorf("outbox: announcing took longer than %v: another instance will finish it", grace)
	}
	return nil
}

// lingering returns ctx with its end put off by the grace.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return late, func() {
		stop()
		cancel()
	}
}

// errFull is why events that come too fast, or after the end of Run, are left in the outbox.
var errFull = errors.New("outbox: too many events wait, or the instance ends")

// Publish implements service.Publisher: it announces events that this process has committed. It
// does not block. Events that cannot be announced now stay in the outbox for a sweep.
func (o *Outbox) Publish(events ...leadership.Event) {
	failpoint.Hit("outbox:committed")
	if o.queue.put(events) {
		return
	}
	for _, e := range events {
		o.leave(e.Election, errFull)
	}
}

// Heard notes that the topic delivered an event, whichever instance published it.
func (o *Outbox) Heard(e leadership.Event) { o.known.raise(e.Election, reach{out: e.Revision}) }

// Reached notes that the topic seems to be reachable again: if this instance cannot announce, it
// tries at once.
func (o *Outbox) Reached() {
	if o.CannotAnnounce() != nil {
		backoff.Signal(o.again)
	}
}

// CannotAnnounce returns why this instance cannot announce events; nil if it can. It returns an
// error from a failed call of the topic until a call succeeds, even if another instance has
// announced those events meanwhile; while known events wait in the outbox for its sweep; and from a
// failed look until a look succeeds.
func (o *Outbox) CannotAnnounce() error {
	if _, cause := o.reach.lost(); cause != nil {
		return cause
	}
	o.left.mu.Lock()
	defer o.left.mu.Unlock()
	return o.left.cause
}

// OthersLeave reports whether other instances leave events in the outbox: one of the last two looks
// found some that another instance had committed 10 s before or earlier.
func (o *Outbox) OthersLeave() bool {
	o.seen.mu.Lock()
	defer o.seen.mu.Unlock()
	return o.seen.others[0] || o.seen.others[1]
}

// leave leaves the events of an election in the outbox for the next sweep of this instance.
func (o *Outbox) leave(e leadership.Election, cause error) {
	if o.left.add(e, cause) {
		o.log.Warn("outbox: events are left behind", "election", e, "cause", cause)
	}
}

// leftovers are the elections that this instance has left events of in the outbox.
type leftovers struct {
	wake chan struct{} // of one: there are some

	mu        sync.Mutex // guards all below
	elections map[leadership.Election]struct{}
	cause     error // of the last failure; nil after a sweep that went well
}

// add reports whether this is the first failure since all went well.
func (l *leftovers) add(e leadership.Election, cause error) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.elections) < maxLeft {
		l.elections[e] = struct{}{}
	}
	first = l.cause == nil
	l.cause = cause
	backoff.Signal(l.wake)
	return first
}

func (l *leftovers) has(e leadership.Election) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.elections[e]
	return ok
}

func (l *leftovers) remove(e leadership.Election) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.elections, e)
}

// join adds the elections to a set.
func (l *leftovers) join(set map[leadership.Election]struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := range l.elections {
		set[e] = struct{}{}
	}
}

// swept notes the result of a sweep.
func (l *leftovers) swept(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || len(l.elections) == 0 {
		l.cause = err
	}
}

// contact remembers whether the topic can be reached.
type contact struct {
	mu    sync.Mutex       // guards all below
	cause error            // of the last failed call of the topic; nil once one has succeeded
	event leadership.Event // the first that the failed call could not publish
}

// note records the outcome of a call of the topic.
func (c *contact) note(events []leadership.Event, acked int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if acked == len(events) {
		c.cause = nil
		return
	}
	c.event, c.cause = events[acked], err
}

// lost returns the event that could not be published, and why; nil if the last call has succeeded.
func (c *contact) lost() (leadership.Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.event, c.cause
}
