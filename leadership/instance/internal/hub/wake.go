package hub

import "sync"

// wakeMutex is a mutex whose holder wakes waiting goroutines. They are woken when it is unlocked,
// so that they need not wait for it.
type wakeMutex struct {
	sync.Mutex
	waking []chan struct{}
}

// wait returns a channel that is closed at the next wake of news. Call with the mutex held, so that
// no wake after the caller's check is missed.
func (m *wakeMutex) wait(news *chan struct{}) <-chan struct{} {
	if *news == nil {
		*news = make(chan struct{})
	}
	return *news
}

// wake wakes all that wait for news. Call with the mutex held.
func (m *wakeMutex) wake(news *chan struct{}) {
	if *news != nil {
		m.waking = append(m.waking, *news)
		*news = nil
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
