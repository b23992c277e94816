package httpapi

import (
	"cmp"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// arrivals notices when the caller sends something on a connection, or leaves. One goroutine
// watches all connections: one for each would take 5 KiB. The zero value is ready.
type arrivals struct {
	once  sync.Once
	file  *os.File // of the epoll instance; Go's own poller watches it. nil: there is none
	epoll syscall.RawConn

	mu       sync.Mutex // guards the fields below
	last     uint64     // the number of the last call
	awaiting map[uint64]*longCall
}

// open makes the epoll instance.
func (a *arrivals) open() {
	a.awaiting = map[uint64]*longCall{}
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return
	}
	syscall.SetNonblock(fd, true) // so that a goroutine can wait for it, and takes no thread
	a.file = os.NewFile(uintptr(fd), "epoll")
	if a.epoll, err = a.file.SyscallConn(); err == nil && a.file.SetReadDeadline(time.Time{}) == nil {
		go a.run()
	} else {
		a.file.Close()
		a.file = nil
	}
}

// close ends the watching.
func (a *arrivals) close() {
	if a.once.Do(func() {}); a.file != nil {
		a.file.Close()
	}
}

// await reports whether the connection can be watched. If it can, c.came is called once, when a
// byte was read or the caller has left, unless forget is called before.
func (a *arrivals) await(c *longCall) bool {
	if a.once.Do(a.open); a.file == nil {
		return false
	}
	a.mu.Lock()
	a.last++
	number := a.last
	c.number = number
	a.awaiting[number] = c
	a.mu.Unlock()
	if a.watch(c.conn, number) != nil {
		a.forget(c)
		return false
	}
	return true
}

// watch makes run call arrived once: for the next byte, or the end of the connection.
func (a *arrivals) watch(c net.Conn, number uint64) error {
	conn, err := rawConn(c)
	if err != nil {
		return err
	}
	event := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP | syscall.EPOLLONESHOT, Fd: int32(number), Pad: int32(number >> 32)}
	var failed error
	err = conn.Control(func(fd uintptr) {
		err := a.epoll.Control(func(epoll uintptr) {
			failed = syscall.EpollCtl(int(epoll), syscall.EPOLL_CTL_ADD, int(fd), &event)
			if failed == syscall.EEXIST { // it was watched before
				failed = syscall.EpollCtl(int(epoll), syscall.EPOLL_CTL_MOD, int(fd), &event)
			}
		})
		failed = cmp.Or(err, failed)
	})
	return cmp.Or(err, failed)
}

func rawConn(c net.Conn) (syscall.RawConn, error) {
	if s, ok := c.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// forget is for a connection that is closed.
func (a *arrivals) forget(c *longCall) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.awaiting, c.number)
}

// run calls arrived for each connection that epoll reports. It returns after close.
func (a *arrivals) run() {
	events := make([]syscall.EpollEvent, 128)
	for {
		n := 0
		err := a.epoll.Read(func(fd uintptr) bool {
			n, _ = syscall.EpollWait(int(fd), events, 0)
			return n != 0
		})
		if err != nil {
			return
		}
		for _, e := range events[:max(n, 0)] { // -1 after a signal
			a.arrived(uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32)
		}
	}
}

// arrived reads a byte of the connection, and ends the wait for it. It does not block.
func (a *arrivals) arrived(number uint64) {
	a.mu.Lock()
	c := a.awaiting[number]
	a.mu.Unlock()
	if c == nil {
		return
	}
	read, err := readNow(c.conn)
	if err == syscall.EAGAIN && a.watch(c.conn, number) == nil { // nothing had arrived
		return
	}
	a.forget(c)
	c.came(read, err)
}

// readNow reads a byte. If none has arrived, the error is syscall.EAGAIN.
func readNow(c net.Conn) (read []byte, err error) {
	raw, err := rawConn(c)
	if err != nil {
		return nil, err
	}
	var b [1]byte
	n := 0
	closed := raw.Read(func(fd uintptr) bool {
		for {
			if n, err = syscall.Read(int(fd), b[:]); err != syscall.EINTR {
				return true
			}
		}
	})
	switch {
	case closed != nil:
		return nil, closed
	case err == nil && n == 0:
		return nil, io.EOF
	case err != nil:
		return nil, err
	}
	return b[:], nil
}
