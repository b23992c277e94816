package bolt

import "time"

// Clock is a clock that runs since the machine was started, also while it is suspended, and that nobody can set.
type Clock struct {
	// BootID names the boot that SinceBoot counts from; "" if there is no telling one boot from another.
	BootID string
	// SinceBoot is the clock's reading. It never goes back within one boot.
	SinceBoot func() time.Duration
}

// storeClock dates a Clock: it gives the store's time.
type storeClock struct {
	anchor    time.Time // the instant at which sinceBoot was zero
	sinceBoot func() time.Duration
}

func (c storeClock) now() time.Time { return c.anchor.Add(c.sinceBoot()) }
