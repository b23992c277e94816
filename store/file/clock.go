package file

import (
	"sync"
	"time"
)

// Clock is a clock that runs from the start of the machine, also while it is suspended, and that
// cannot be set.
type Clock struct {
	// BootID names the boot that SinceBoot counts from; "" if boots cannot be told apart.
	BootID string
	// SinceBoot is the clock's reading. It never goes back within one boot.
	SinceBoot func() time.Duration
}

// storeClock turns the reading of a Clock into the store's time.
type storeClock struct {
	anchor    time.Time // the instant at which sinceBoot was zero
	sinceBoot func() time.Duration
}

func (c storeClock) now() time.Time { return c.anchor.Add(c.sinceBoot()) }

// moments gives transactions their times, in the order of what they see. A change has the time at
// which it was decided, and is visible only once it is committed. A read meanwhile does not see it,
// and so must not have a later time.
type moments struct {
	clock storeClock

	mu       sync.Mutex // guards deciding; held while the clock is read
	deciding time.Time  // the time of the change that is under way; zero if there is none
}

// begin returns the time of a change, which is the only one under way until end.
func (m *moments) begin() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deciding = m.clock.now()
	return m.deciding
}

func (m *moments) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deciding = time.Time{}
}

// reading returns the time of a read that begins after this call, unless that sees a later change.
func (m *moments) reading() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.deciding.IsZero() {
		return m.clock.now()
	}
	return m.deciding
}
