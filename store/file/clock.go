package file

import (
	"context"
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
// and so must not have a later time; nor must it have one of before it was asked for, by which a
// lease that has ended would stand, and so it waits for a change that was under way by then.
type moments struct {
	clock storeClock

	mu       sync.Mutex    // guards all below; held while the clock is read
	deciding time.Time     // the time of the change that is under way; zero if there is none
	decided  chan struct{} // closed at its end, if a read waits for that
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
	if m.decided != nil {
		close(m.decided)
		m.decided = nil
	}
}

// reading returns the time of a read that begins after this call, unless that sees a later change.
// It waits for one change at most; its only error is that of ctx.
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
