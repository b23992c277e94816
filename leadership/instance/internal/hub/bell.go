package hub

import "sync"

// bell wakes all who wait for it, at once. Its zero value is ready.
type bell struct{ rung chan struct{} }

// wait returns what is closed when the bell rings the next time. Who calls it while the mutex is held under which it has found nothing misses
// nothing.
func (b *bell) wait() <-chan struct{} {
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

// belfry is a mutex for bells. They ring when it is unlocked, so that those who wake need not wait for who rings.
type belfry struct {
	sync.Mutex
	ringing []chan struct{}
}

// ring rings the bell. The mutex is held.
func (f *belfry) ring(b *bell) {
	if b.rung != nil {
		f.ringing = append(f.ringing, b.rung)
		b.rung = nil
	}
}

// Unlock unlocks the mutex.
func (f *belfry) Unlock() {
	ringing := f.ringing
	f.ringing = nil
	f.Mutex.Unlock()
	for _, rung := range ringing {
		close(rung)
	}
}
