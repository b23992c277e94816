package expiry

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"regent/leadership"
	"regent/leadership/boottime"
)

// Config is how a Lookout is made. Expire is required.
type Config struct {
	// Expire records that the election's lease has run out, if it has, and returns the election as it then is. It must heed its ctx. The
	// method of leadership.Service does it. A lease that is held after all is forgotten, unless Expire lets the Lookout Learn it.
	Expire func(context.Context, leadership.Election) (leadership.Lease, error)
	// Now is a clock that never goes back, that nobody can set, and that runs while the machine is suspended; nil for boottime.Now.
	Now func() time.Duration
	// Delay is how long after the end it looks at the earliest, so that a candidate that waits in line comes first: longer than the
	// store's guard; 0 for 250 ms.
	Delay time.Duration
	// Jitter is the most that comes on top, at random, so that of several instances mostly one looks: 0 for 500 ms.
	Jitter time.Duration
	// Log is told of looks that were given up; nil for nobody.
	Log *slog.Logger
}

// Lookout keeps the ends of leases in mind and looks after them. All methods may be called at the same time.
type Lookout struct {
	expire        func(context.Context, leadership.Election) (leadership.Lease, error)
	now           func() time.Duration
	delay, jitter time.Duration
	log           *slog.Logger
	wake          chan struct{} // of one: there is something to look after earlier than before

	mu    sync.Mutex // guards all below, and the terms
	terms map[leadership.Election]*term
	line  line // the terms but for those that a look is under way for
}

// New returns a lookout that looks while Run runs.
func New(c Config) *Lookout {
	l := &Lookout{
		expire: c.Expire,
		now:    c.Now,
		delay:  cmp.Or(c.Delay, 250*time.Millisecond),
		jitter: cmp.Or(c.Jitter, 500*time.Millisecond),
		log:    cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
		wake:   make(chan struct{}, 1),
		terms:  make(map[leadership.Election]*term),
	}
	if l.now == nil {
		l.now = boottime.Now
	}
	return l
}

// driftPart is the part of a duration by which the clocks of this machine and of the store may differ: 0.1 %.
const driftPart = 1000

// Learn notes the end of a lease that was just granted or renewed through this instance, and forgets one that was seen to be recorded as
// ended. ExpiresIn is counted from the call. It does not block.
func (l *Lookout) Learn(lease leadership.Lease) {
	due := l.now() + lease.ExpiresIn + lease.ExpiresIn/driftPart + l.delay + rand.N(l.jitter)
	l.mu.Lock()
	defer l.mu.Unlock()
	t, known := l.terms[lease.Election]
	if known && lease.Revision < t.revision {
		return // a later reply was faster
	}
	if known && lease.Revision == t.revision {
		if lease.State == leadership.Held { // else it is over, and nobody has recorded it yet
			t.due, t.failed = max(t.due, due), 0
		}
		return
	}
	if known {
		l.forget(t)
	}
	if lease.State == leadership.Held {
		l.keep(&term{election: lease.Election, revision: lease.Revision, due: due})
	}
}

// Heard forgets a lease if the event says that its term has ended or that another has begun. It does not block.
func (l *Lookout) Heard(e leadership.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, known := l.terms[e.Election]
	if known && e.Revision > t.revision && (e.LeaderID == "" || e.Type == leadership.EventAcquired) {
		l.forget(t)
	}
}
