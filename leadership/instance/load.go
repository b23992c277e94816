package instance

import (
	"sync"
	"time"

	"regent/leadership"
)

// load measures how long renewals take. Under load leaders are told to renew less often.
type load struct {
	mu   sync.Mutex    // guards all below
	mean time.Duration // duration of the last renewals, as of the time at
	at   time.Duration
}

const (
	// Renewals that take light or less do not count as load, even in a distant region; at heavy the
	// load is full.
	light = 500 * time.Millisecond
	heavy = 2 * time.Second
	// weight is the weight of one renewal in the mean.
	weight = 0.1
	// forgets is how long a mean takes to halve without renewals.
	forgets = 10 * time.Second
)

// took counts a renewal that has taken d.
func (l *load) took(d, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	mean := l.meanAt(now)
	l.mean, l.at = mean+time.Duration(weight*float64(d-mean)), now
}

// meanAt returns the mean as of now. Call with mu held.
func (l *load) meanAt(now time.Duration) time.Duration {
	return l.mean >> min(max(now-l.at, 0)/forgets, 62)
}

// share returns the load, from 0 to 1.
func (l *load) share(now time.Duration) float64 {
	l.mu.Lock()
	mean := l.meanAt(now)
	l.mu.Unlock()
	return min(max(float64(mean-light)/float64(heavy-light), 0), 1)
}

// stretch delays the leader's next renewal: from a third of the lease, without load, to half of the
// remaining time, so that one renewal may still be lost.
func (l *load) stretch(lease *leadership.Lease, now time.Duration) {
	if room := lease.ExpiresIn/2 - lease.RenewIn; room > 0 {
		lease.RenewIn += time.Duration(l.share(now) * float64(room))
	}
}

// Stretch returns how far leaders are told to delay their renewals because renewals take long: 0 is
// every third of their lease, 1 every half of it.
func (i *Instance) Stretch() float64 { return i.load.share(i.now()) }
