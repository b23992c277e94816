//go:build unix && !linux

package leash

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"regent/leadership/boottime"
)

// maxTimer is how long a timer runs at most on systems whose timers do not count suspended time.
const maxTimer = 100 * time.Millisecond

type orderReader struct{ fd int }

func newOrderReader(fd int) (*orderReader, error) { return &orderReader{fd}, nil }

// wait returns when there is something to read, or when the deadline may have come.
func (b *orderReader) wait(deadline time.Duration) (readable bool, err error) {
	fds := []unix.PollFd{{Fd: int32(b.fd), Events: unix.POLLIN}}
	left := min(max(deadline-boottime.Now(), 0), maxTimer)
	if _, err := unix.Poll(fds, int((left+time.Millisecond-1)/time.Millisecond)); err != nil && !errors.Is(err, unix.EINTR) {
		return false, err
	}
	return fds[0].Revents != 0, nil
}

// alarm fires at an instant or before.
type alarm struct {
	fired chan struct{}
	timer *time.Timer
}

func newAlarm() (*alarm, error) {
	a := &alarm{fired: make(chan struct{}, 1)}
	a.timer = time.AfterFunc(maxTimer, func() {
		select {
		case a.fired <- struct{}{}:
		default:
		}
	})
	return a, nil
}

func (a *alarm) set(at time.Duration) { a.timer.Reset(min(max(at-boottime.Now(), 0), maxTimer)) }

func (a *alarm) close() { a.timer.Stop() }
