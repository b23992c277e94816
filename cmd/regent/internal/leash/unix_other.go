//go:build unix && !linux

package leash

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"regent/leadership/boottime"
)

func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func dieWithParent() error { return nil }

// refusePrivileges returns an error for a program that would run as another user. What that program
// starts cannot be checked on this system.
func refusePrivileges(path string) error {
	file, err := os.Stat(path)
	if err == nil && file.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
		return errors.New("it is a set-uid or set-gid program, which runs as another user and could not be stopped at the deadline")
	}
	return nil // Exec will report why the file cannot be read
}

// awaitExit returns when the process has exited. Its PID may be reused at once; the new process
// would have to lead a group to be mistaken for it.
func awaitExit(p *os.Process, _ bool, _ *atomic.Bool) { p.Wait() }

// group is the process group that a command was started in.
type group struct {
	id   int
	mark string
}

func openGroup(id, _ int, mark string) *group { return &group{id, mark} }

func (g *group) close() {}

func (g *group) signal(sig syscall.Signal) { syscall.Kill(-g.id, sig) }

// sweep reports whether any process of the group still runs.
func (g *group) sweep() (left bool) { return syscall.Kill(-g.id, 0) == nil }

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
