//go:build unix && !linux

package leash

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"regent/leadership/boottime"
)

// nap is for how long a timer is trusted where none counts the time of a suspended machine.
const nap = 100 * time.Millisecond

// inbox is where the guard reads its orders.
type inbox struct{ fd int }

func newInbox(fd int) (*inbox, error) { return &inbox{fd}, nil }

// wait returns when there is something to read, or when the deadline may have come.
func (b *inbox) wait(deadline time.Duration) (readable bool, err error) {
	fds := []unix.PollFd{{Fd: int32(b.fd), Events: unix.POLLIN}}
	left := min(max(deadline-boottime.Now(), 0), nap)
	if _, err := unix.Poll(fds, int((left+time.Millisecond-1)/time.Millisecond)); err != nil && !errors.Is(err, unix.EINTR) {
		return false, err
	}
	return fds[0].Revents != 0, nil
}

// alarm rings at a moment, and may ring before.
type alarm struct {
	rings chan struct{}
	timer *time.Timer
}

func newAlarm() (*alarm, error) {
	a := &alarm{rings: make(chan struct{}, 1)}
	a.timer = time.AfterFunc(nap, func() {
		select {
		case a.rings <- struct{}{}:
		default:
		}
	})
	return a, nil
}

// set lets it ring at that moment instead of any other, or before.
func (a *alarm) set(at time.Duration) { a.timer.Reset(min(max(at-boottime.Now(), 0), nap)) }

func (a *alarm) close() { a.timer.Stop() }
