package leash

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// newTimer returns a timer that also counts the time that the machine is suspended.
func newTimer(flags int) (int, error) {
	return unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|flags)
}

// setTimer sets the timer to an instant of boottime.Now. It fires at once if that has passed.
func setTimer(fd int, at time.Duration) error {
	at = max(at, 1) // 0 would disarm it
	return unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(at))}, nil)
}

type orderReader struct{ fd, timer int }

func newOrderReader(fd int) (*orderReader, error) {
	timer, err := newTimer(0)
	return &orderReader{fd, timer}, err
}

// wait returns when there is something to read, or at the deadline.
func (b *orderReader) wait(deadline time.Duration) (readable bool, err error) {
	if err := setTimer(b.timer, deadline); err != nil {
		return false, err
	}
	fds := []unix.PollFd{{Fd: int32(b.fd), Events: unix.POLLIN}, {Fd: int32(b.timer), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
		return false, err
	}
	return fds[0].Revents != 0, nil
}

type alarm struct {
	fired chan struct{}
	timer *os.File
	fd    int
	reads sync.WaitGroup
}

func newAlarm() (*alarm, error) {
	fd, err := newTimer(unix.TFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	a := &alarm{fired: make(chan struct{}, 1), timer: os.NewFile(uintptr(fd), "timer"), fd: fd}
	a.reads.Go(a.listen)
	return a, nil
}

func (a *alarm) listen() {
	count := make([]byte, 8)
	for {
		if _, err := a.timer.Read(count); err != nil {
			return
		}
		select {
		case a.fired <- struct{}{}:
		default:
		}
	}
}

// set replaces the instant. The alarm may still fire once for the previous one.
func (a *alarm) set(at time.Duration) { setTimer(a.fd, at) }

func (a *alarm) close() {
	a.timer.Close()
	a.reads.Wait()
}
