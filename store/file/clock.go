package file

import (
	"context"
	"sync"
	"time"
)

// Clock is a clock that runs from the start of the machine, even while it is suspended, and that
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

// moments gives transactions times that agree with the order in which they see each other. A change
// has the time at which it was decided, and is visible only once it is committed. A read in between
// does not see it, so it must not have a later time. Nor may it have a time before its call, at
// which an ended lease would still be held. So a read waits for a change that is in progress.
type moments struct {
	clock storeClock

	mu       sync.Mutex    // guards all below; held while the clock is read
	deciding time.Time     // the time of the change in progress; zero if there is none
	decided  chan struct{} // closed when that change has ended, if a read waits for it
}

// begin returns the time of a change. Only one change may be in progress, until end.
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
	if m.decided != nil {
		close(m.decided)
		m.decided = nil
	}
}

// reading returns the time for a read that begins after this call; a read that sees a later change
// has that change's time. It waits for at most one change; its only error is that of ctx.
func (m *moments) reading(ctx context.Context) (time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := m.clock.now()
	for !m.deciding.IsZero() && m.deciding.Before(asked) {
		if m.decided == nil {
			m.decided = make(chan struct{})
		}
		decided := m.decided
		m.mu.Unlock()
		select {
		case <-decided:
		case <-ctx.Done():
		}
		m.mu.Lock()
		if err := ctx.Err(); err != nil {
			return time.Time{}, err
		}
	}
	if m.deciding.IsZero() {
		return m.clock.now(), nil
	}
	return m.deciding, nil
}
