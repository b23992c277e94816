package hub

import "sync"

// broadcast wakes all its waiters at once. Its zero value is ready.
type broadcast struct{ c chan struct{} }

// wait returns a channel that is closed at the next broadcast. Call with the mutex held: what
// happens after the check cannot be missed.
func (b *broadcast) wait() <-chan struct{} {
	if b.c == nil {
		b.c = make(chan struct{})
	}
	return b.c
}

// wakeMutex is a mutex whose holder wakes others. They wake when it is unlocked, so that they need
// not wait for it.
type wakeMutex struct {
	sync.Mutex
	waking []chan struct{}
}

// wake wakes all waiters of the broadcast. Call with the mutex held.
func (m *wakeMutex) wake(b *broadcast) {
	if b.c != nil {
		m.waking = append(m.waking, b.c)
		b.c = nil
	}
}

// Unlock unlocks the mutex.
func (m *wakeMutex) Unlock() {
	waking := m.waking
	m.waking = nil
	m.Mutex.Unlock()
	for _, c := range waking {
		close(c)
	}
}

// signal sends to c, a channel of one, unless something is in it.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
